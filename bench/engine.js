// Serves DynamoDB (dynalite over the store in a folder) and an SQS that takes whatever is sent, on free ports of
// loopback, which it prints, until its standard input is closed: `node engine.js <folder>`. With a plan, as JSON, it
// writes the rows of waiting jobs straight into that store instead: in seconds, where BatchWriteItem takes minutes.
const http = require('http')
const { createHash, randomUUID } = require('crypto')
const dynalite = require('../tests/contract/node_modules/dynalite')
const db = require('../tests/contract/node_modules/dynalite/db')

const BATCH = 5000
const [folder, plan] = [process.argv[2], process.argv[3] && JSON.parse(process.argv[3])]

async function load () {
  const rows = db.create({ path: folder }).getItemDb(plan.table.TableName)
  for (let from = 0; from < plan.rows; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, plan.rows - from) }, (_, index) => {
      const due = new Date(plan.first_ms + (from + index) * plan.step_ms).toISOString()
      const item = { ...plan.item, sk: { S: `${due}#${randomUUID()}#job` } }
      return { type: 'put', key: db.createKey(item, plan.table), value: item }
    })
    await new Promise((resolve, reject) => rows.batch(batch, error => (error ? reject(error) : resolve())))
  }
}

const sqs = http.createServer((request, response) => {
  const parts = []
  request.on('data', part => parts.push(part)).on('end', () => {
    const { Entries } = JSON.parse(Buffer.concat(parts))
    const Successful = Entries.map(({ Id, MessageBody }) => ({
      Id, MessageId: randomUUID(), MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex'),
    }))
    response.setHeader('content-type', 'application/x-amz-json-1.0')
    response.end(JSON.stringify({ Successful, Failed: [] }))
  })
})
// boto3 keeps its connections; closed ones would be made again while something is measured.
sqs.keepAliveTimeout = 600_000

if (plan) {
  load().then(() => process.exit(0), error => { console.error(error); process.exit(1) })
} else {
  const dynamodb = dynalite({ path: folder, createTableMs: 0 })
  dynamodb.listen(0, '127.0.0.1', () => sqs.listen(0, '127.0.0.1', () => {
    console.log(JSON.stringify({ dynamodb: dynamodb.address().port, sqs: sqs.address().port }))
  }))
  process.stdin.resume().on('end', () => process.exit())
}
