// Writes with kafka-node: no codec, gzip, snappy. node kafka_node.js BOOTSTRAP TOPIC
const { KafkaClient, Producer, KeyedMessage } = require('kafka-node')
const { messages } = require('./records')
const [address, topic] = process.argv.slice(2)

const client = new KafkaClient({ kafkaHost: address, connectTimeout: 10000, requestTimeout: 10000 })
const producer = new Producer(client, { requireAcks: 1, partitionerType: 0 })
const steps = [[0, 1], [0, 50], [1, 1], [1, 50]]
const ways = ['none', 'gzip']
try {
  require('snappy')
  steps.push([2, 1], [2, 50])
  ways.push('snappy')
} catch (error) { /* its native part does not build everywhere */ }
let sent = 0

function next () {
  const step = steps.shift()
  if (!step) {
    console.log(JSON.stringify({ sent, ways }))
    process.exit(0)
  }
  const [attributes, count] = step
  const list = messages(count, sent, false).map(each => new KeyedMessage(each.key === null ? '' : each.key, each.value === null ? '' : each.value))
  producer.send([{ topic, partition: 0, attributes, messages: list, timestamp: Date.now() - 86400000 + sent * 1000 }], error => {
    if (error) { console.error(error); process.exit(1) }
    sent += count
    next()
  })
}

producer.on('ready', () => client.refreshMetadata([topic], error => { if (error) { console.error(error); process.exit(1) } else next() }))
producer.on('error', error => { console.error(error); process.exit(1) })
setTimeout(() => { console.error('no answer'); process.exit(1) }, 60000)
