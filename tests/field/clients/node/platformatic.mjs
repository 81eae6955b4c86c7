// Writes with @platformatic/kafka: codecs, headers, an idempotent producer. node platformatic.mjs BOOTSTRAP TOPIC plain|all
import { Producer, stringSerializers } from '@platformatic/kafka'
import { createRequire } from 'node:module'

const { messages } = createRequire(import.meta.url)('./records')
const [address, topic, mode] = process.argv.slice(2)
const ways = []
let sent = 0

for (const compression of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
  for (const idempotent of mode === 'plain' ? [false] : [false, true]) {
    try {
      const producer = new Producer({ clientId: 'field', bootstrapBrokers: [address], serializers: stringSerializers, compression, idempotent, acks: -1, retries: 3 })
      for (const count of [1, 60]) {
        const list = messages(count, sent, true).map(each => {
          const made = { topic, partition: 0, timestamp: BigInt(each.timestamp), value: each.value === null ? undefined : each.value }
          if (each.key !== null) made.key = each.key
          if (each.headers) made.headers = each.headers
          return made
        })
        await producer.send({ messages: list })
        sent += count
      }
      await producer.close()
      ways.push(compression + (idempotent ? ' idempotent' : ''))
    } catch (error) {
      if (compression === 'none') { console.error(error); process.exit(1) }
      ways.push(`${compression}: ${String(error.message).slice(0, 60)}`)
    }
  }
}
console.log(JSON.stringify({ sent, ways }))
process.exit(0)
