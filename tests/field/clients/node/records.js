// The messages that the Node clients send: keys, values and headers with nulls among them.
const base = Date.now() - 86400000

exports.messages = function (count, sent, withHeaders) {
  const made = []
  for (let number = 0; number < count; number++) {
    const message = {
      key: number % 4 === 3 ? null : 'key-' + number,
      value: number % 10 === 9 ? null : 'value-träger-' + 'x'.repeat(number * 17 % 500),
      timestamp: String(base + (sent + number) * 1000)
    }
    if (withHeaders && number % 3 === 0) message.headers = { source: 'node', empty: '' }
    made.push(message)
  }
  return made
}
