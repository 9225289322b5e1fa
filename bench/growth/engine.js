// Serves DynamoDB (dynalite over the store in a folder) and an SQS that takes whatever is sent, on free ports of
// loopback, which it prints, until its standard input is closed. `node engine.js <folder>`
const http = require('http')
const { createHash, randomUUID } = require('crypto')
const dynalite = require('../../tests/contract/node_modules/dynalite')

const dynamodb = dynalite({ path: process.argv[2], createTableMs: 0 })

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
// boto3 keeps its connections; closed ones would be made anew while something is measured.
sqs.keepAliveTimeout = 600_000

dynamodb.listen(0, '127.0.0.1', () => sqs.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ dynamodb: dynamodb.address().port, sqs: sqs.address().port }))
}))
process.stdin.resume().on('end', () => process.exit())
