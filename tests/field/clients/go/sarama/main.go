// Writes with sarama: codecs, headers, an idempotent producer, transactions. sarama BOOTSTRAP TOPIC VERSION plain|all
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func messages(topic string, count int, headers bool, base time.Time) []*sarama.ProducerMessage {
	var made []*sarama.ProducerMessage
	for number := 0; number < count; number++ {
		message := &sarama.ProducerMessage{Topic: topic, Partition: 0, Timestamp: base.Add(time.Duration(number) * time.Second)}
		if number%4 != 3 {
			message.Key = sarama.StringEncoder(fmt.Sprintf("key-%d", number))
		}
		if number%10 != 9 {
			message.Value = sarama.ByteEncoder(bytes.Repeat([]byte{byte('a' + number%26)}, number*19%600))
		}
		if headers && number%3 == 0 {
			message.Headers = []sarama.RecordHeader{{Key: []byte("source"), Value: []byte("go")}, {Key: []byte("empty"), Value: []byte{}}}
		}
		made = append(made, message)
	}
	return made
}

func main() {
	address, topic, mode := os.Args[1], os.Args[2], os.Args[4]
	version, err := sarama.ParseKafkaVersion(os.Args[3])
	check(err)
	headers := version.IsAtLeast(sarama.V0_11_0_0)
	codecs := map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy}
	order := []string{"none", "gzip", "snappy"}
	if version.IsAtLeast(sarama.V0_10_0_0) {
		codecs["lz4"], order = sarama.CompressionLZ4, append(order, "lz4")
	}
	if version.IsAtLeast(sarama.V2_1_0_0) {
		codecs["zstd"], order = sarama.CompressionZSTD, append(order, "zstd")
	}
	base, sent, ways := time.Now().Add(-24*time.Hour), 0, []string{}
	for _, name := range order {
		for _, idempotent := range []bool{false, true} {
			if idempotent && mode == "plain" {
				continue
			}
			config := sarama.NewConfig()
			config.Version = version
			config.Producer.Return.Successes = true
			config.Producer.Partitioner = sarama.NewManualPartitioner
			config.Producer.Compression = codecs[name]
			config.Producer.RequiredAcks = sarama.WaitForAll
			config.Producer.Flush.Messages, config.Producer.Flush.Frequency = 30, 100*time.Millisecond
			if idempotent {
				config.Producer.Idempotent = true
				config.Net.MaxOpenRequests = 1
			}
			producer, err := sarama.NewSyncProducer([]string{address}, config)
			check(err)
			check(producer.SendMessages(messages(topic, 60, headers, base)))
			_, _, err = producer.SendMessage(messages(topic, 1, headers, base)[0])
			check(err)
			check(producer.Close())
			base, sent = base.Add(90*time.Second), sent+61
			way := name
			if idempotent {
				way += " idempotent"
			}
			ways = append(ways, way)
		}
	}
	if mode == "all" {
		config := sarama.NewConfig()
		config.Version = version
		config.Producer.Return.Successes = true
		config.Producer.Partitioner = sarama.NewManualPartitioner
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Producer.Idempotent = true
		config.Producer.Transaction.ID = "sarama-" + topic
		config.Net.MaxOpenRequests = 1
		producer, err := sarama.NewSyncProducer([]string{address}, config)
		check(err)
		for number := 0; number < 6; number++ {
			check(producer.BeginTxn())
			check(producer.SendMessages(messages(topic, 7, headers, base)))
			sent += 7
			if number%3 == 2 {
				check(producer.AbortTxn())
			} else {
				check(producer.CommitTxn())
			}
		}
		check(producer.Close())
		ways = append(ways, "transactions")
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": sent, "ways": ways}))
}
