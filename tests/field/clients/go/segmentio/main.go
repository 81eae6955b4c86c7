// Writes with segmentio/kafka-go: codecs, headers. segmentio BOOTSTRAP TOPIC VERSION plain|all
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	address, topic, mode := os.Args[1], os.Args[2], os.Args[4]
	var major, minor int
	_, _ = fmt.Sscanf(os.Args[3], "%d.%d", &major, &minor)
	base, sent, ways := time.Now().Add(-24*time.Hour), 0, []string{}
	codecs := []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
	if major*100+minor < 201 {
		codecs = codecs[:4] // brokers before 2.1 know no zstd
	}
	for _, codec := range codecs {
		writer := &kafka.Writer{Addr: kafka.TCP(address), Topic: topic, Compression: codec, BatchTimeout: 20 * time.Millisecond,
			RequiredAcks: kafka.RequireAll, Balancer: kafka.BalancerFunc(func(kafka.Message, ...int) int { return 0 })}
		for _, count := range []int{1, 60} {
			var messages []kafka.Message
			for number := 0; number < count; number++ {
				message := kafka.Message{Time: base.Add(time.Duration(number) * time.Second)}
				if number%4 != 3 {
					message.Key = []byte(fmt.Sprintf("key-%d", number))
				}
				if number%10 != 9 {
					message.Value = bytes.Repeat([]byte{byte('a' + number%26)}, number*31%500)
				}
				if mode == "all" && number%3 == 0 {
					message.Headers = []kafka.Header{{Key: "source", Value: []byte("segmentio")}, {Key: "null", Value: nil}}
				}
				messages = append(messages, message)
			}
			if err := writer.WriteMessages(context.Background(), messages...); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			sent += count
		}
		if err := writer.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		base = base.Add(90 * time.Second)
		if codec == 0 {
			ways = append(ways, "none")
		} else {
			ways = append(ways, codec.String())
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": sent, "ways": ways})
}
