// Writes the rows of waiting jobs straight into the store of a dynalite that is not running: in seconds, where
// BatchWriteItem takes minutes. The keys are dynalite's own. `node load.js <folder> <plan as JSON>`
const { randomUUID } = require('crypto')
const db = require('../../tests/contract/node_modules/dynalite/db')

const BATCH = 5000
const [folder, plan] = [process.argv[2], JSON.parse(process.argv[3])]
const [rows, table] = [db.create({ path: folder }).getItemDb(plan.table.TableName), plan.table]

function rowOf (number) {
  const due = new Date(plan.first_ms + number * plan.step_ms).toISOString()
  const item = { ...plan.item, sk: { S: `${due}#${randomUUID()}#job` } }
  return { type: 'put', key: db.createKey(item, table), value: item }
}

async function load () {
  for (let from = 0; from < plan.rows; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, plan.rows - from) }, (_, index) => rowOf(from + index))
    await new Promise((resolve, reject) => rows.batch(batch, error => (error ? reject(error) : resolve())))
  }
}

load().then(() => process.exit(0), error => { console.error(error); process.exit(1) })
