// Writes with franz-go: codecs, headers, with and without idempotence, transactions. franz BOOTSTRAP TOPIC VERSION plain|all
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func records(topic string, count int, headers bool, base time.Time) []*kgo.Record {
	var made []*kgo.Record
	for number := 0; number < count; number++ {
		record := &kgo.Record{Topic: topic, Partition: 0, Timestamp: base.Add(time.Duration(number) * time.Second)}
		if number%4 != 3 {
			record.Key = []byte(fmt.Sprintf("key-%d", number))
		}
		if number%10 != 9 {
			record.Value = bytes.Repeat([]byte{byte('a' + number%26)}, number*29%800)
		}
		if headers && number%3 == 0 {
			record.Headers = []kgo.RecordHeader{{Key: "source", Value: []byte("franz")}, {Key: "null", Value: nil}}
		}
		made = append(made, record)
	}
	return made
}

func main() {
	address, topic, mode := os.Args[1], os.Args[2], os.Args[4]
	background := context.Background()
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	base, sent, ways := time.Now().Add(-24*time.Hour), 0, []string{}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, idempotent := range []bool{false, true} {
			if idempotent && mode == "plain" {
				continue
			}
			options := []kgo.Opt{kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[name], kgo.NoCompression()), kgo.ProducerLinger(20 * time.Millisecond)}
			if !idempotent {
				options = append(options, kgo.DisableIdempotentWrite())
			}
			client, err := kgo.NewClient(options...)
			check(err)
			limited, cancel := context.WithTimeout(background, 30*time.Second)
			check(client.ProduceSync(limited, records(topic, 70, mode == "all", base)...).FirstErr())
			check(client.ProduceSync(limited, records(topic, 1, mode == "all", base)...).FirstErr())
			cancel()
			client.Close()
			base, sent = base.Add(90*time.Second), sent+71
			way := name
			if idempotent {
				way += " idempotent"
			}
			ways = append(ways, way)
		}
	}
	if mode == "all" {
		client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("franz-"+topic))
		check(err)
		for number := 0; number < 6; number++ {
			check(client.BeginTransaction())
			check(client.ProduceSync(background, records(topic, 7, true, base)...).FirstErr())
			sent += 7
			check(client.EndTransaction(background, kgo.TransactionEndTry(number%3 != 2)))
		}
		client.Close()
		ways = append(ways, "transactions")
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": sent, "ways": ways}))
}
