// Writes with no-kafka: no codec, gzip, snappy. node no_kafka.js BOOTSTRAP TOPIC
const Kafka = require('no-kafka')
const { messages } = require('./records')
const [address, topic] = process.argv.slice(2)

async function main () {
  let sent = 0
  const ways = []
  const codecs = [['none', Kafka.COMPRESSION_NONE], ['gzip', Kafka.COMPRESSION_GZIP], ['snappy', Kafka.COMPRESSION_SNAPPY]]
  for (const [name, codec] of codecs) {
    const producer = new Kafka.Producer({ connectionString: address, codec, asyncCompression: false, logger: { logLevel: 1 } })
    await producer.init()
    for (const count of [1, 50]) {
      const list = messages(count, sent, false).map(each => ({ topic, partition: 0, message: { key: each.key, value: each.value } }))
      const results = await producer.send(list, { codec, retries: { attempts: 3 } })
      for (const each of results) if (each.error) throw each.error
      sent += count
    }
    await producer.end()
    ways.push(name)
  }
  console.log(JSON.stringify({ sent, ways }))
  process.exit(0)
}

setTimeout(() => { console.error('no answer'); process.exit(1) }, 60000)
main().catch(error => { console.error(error); process.exit(1) })
