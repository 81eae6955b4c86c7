// Writes with kafkajs: codecs, headers, an idempotent producer, transactions. node kafkajs.js BOOTSTRAP TOPIC plain|all
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
try {
  const LZ4 = require('kafkajs-lz4')
  CompressionCodecs[CompressionTypes.LZ4] = new LZ4().codec
} catch (error) { /* its native part does not build everywhere */ }

const { messages } = require('./records')
const [address, topic, mode] = process.argv.slice(2)

async function main () {
  const kafka = new Kafka({ clientId: 'field', brokers: [address], logLevel: logLevel.ERROR })
  const ways = []
  let sent = 0
  const names = ['None', 'GZIP', 'Snappy'].concat(CompressionCodecs[CompressionTypes.LZ4] ? ['LZ4'] : [])
  for (const name of names) {
    for (const idempotent of mode === 'plain' ? [false] : [false, true]) {
      const producer = kafka.producer({ idempotent, maxInFlightRequests: 1, createPartitioner: () => () => 0 })
      await producer.connect()
      for (const count of [1, 60]) {
        try {
          await producer.send({ topic, compression: CompressionTypes[name], acks: -1, messages: messages(count, sent, mode === 'all') })
          sent += count
        } catch (error) {
          if (name !== 'LZ4') throw error
        }
      }
      await producer.disconnect()
      ways.push(name.toLowerCase() + (idempotent ? ' idempotent' : ''))
    }
  }
  if (mode === 'all') {
    const producer = kafka.producer({ transactionalId: 'kafkajs-' + topic, maxInFlightRequests: 1, idempotent: true, createPartitioner: () => () => 0 })
    await producer.connect()
    for (let number = 0; number < 6; number++) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: messages(7, sent, true) })
      sent += 7
      if (number % 3 === 2) await transaction.abort(); else await transaction.commit()
    }
    await producer.disconnect()
    ways.push('transactions')
  }
  console.log(JSON.stringify({ sent, ways }))
  process.exit(0)
}

main().catch(error => { console.error(error); process.exit(1) })
