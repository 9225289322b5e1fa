// Serves DynamoDB on a free port of loopback, which it prints, until its standard input is closed.
const server = require('dynalite')({ createTableMs: 0 })

server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.resume().on('end', () => process.exit())
