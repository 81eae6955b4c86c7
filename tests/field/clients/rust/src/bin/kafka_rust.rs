// Writes with the crate kafka (produce requests of version 0): each codec that it has. kafka_rust BOOTSTRAP TOPIC
use kafka::client::{Compression, KafkaClient, ProduceMessage, RequiredAcks};
use std::time::Duration;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut client = KafkaClient::new(vec![words[1].clone()]);
    client.load_metadata_all().unwrap();
    let mut sent = 0;
    for codec in [Compression::NONE, Compression::GZIP, Compression::SNAPPY] {
        client.set_compression(codec);
        for size in [1usize, 9, 50] {
            let values: Vec<Vec<u8>> = (0..size).map(|each| vec![b'a' + (each % 26) as u8; each * 23 % 600]).collect();
            let keys: Vec<String> = (0..size).map(|each| format!("key-{each}")).collect();
            let messages: Vec<ProduceMessage> = (0..size)
                .map(|each| {
                    let key = if each % 4 == 3 { None } else { Some(keys[each].as_bytes()) };
                    let value = if each % 10 == 9 { None } else { Some(values[each].as_slice()) };
                    ProduceMessage::new(&words[2], 0, key, value)
                })
                .collect();
            let confirmed = client.produce_messages(RequiredAcks::One, Duration::from_secs(10), messages).unwrap();
            for each in confirmed {
                for partition in each.partition_confirms {
                    partition.offset.unwrap();
                }
            }
            sent += size;
        }
    }
    println!("{{\"sent\": {sent}, \"ways\": [\"none\", \"gzip\", \"snappy\"]}}");
}
