// Writes with rskafka: every codec, batches of one and of many records, headers, nulls. rskafka BOOTSTRAP TOPIC VERSION
use chrono::{TimeZone, Utc};
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;
use std::collections::BTreeMap;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let client = ClientBuilder::new(vec![words[1].clone()]).build().await.unwrap();
    let partition = client.partition_client(words[2].clone(), 0, UnknownTopicHandling::Retry).await.unwrap();
    let base = Utc::now().timestamp_millis() - 86_400_000;
    let mut sent = 0i64;
    let mut codecs = vec![
        Compression::NoCompression,
        Compression::Gzip,
        Compression::Lz4,
        Compression::Snappy,
    ];
    let version: Vec<u32> = words[3].split('.').map(|each| each.parse().unwrap()).collect();
    if version[0] * 100 + version[1] >= 201 {
        codecs.push(Compression::Zstd); // brokers before 2.1 do not know it
    }
    let ways: Vec<String> = codecs.iter().map(|each| format!("\"{each:?}\"")).collect();
    for codec in codecs {
        for size in [1usize, 7, 60] {
            let mut records = Vec::new();
            for number in 0..size {
                let mut headers = BTreeMap::new();
                if number % 3 == 0 {
                    headers.insert("source".to_owned(), vec![0u8, 255, number as u8]);
                    headers.insert("träger".to_owned(), Vec::new());
                }
                records.push(Record {
                    key: if number % 5 == 4 { None } else { Some(format!("key-{number}").into_bytes()) },
                    value: if number % 11 == 10 { None } else { Some(vec![b'a' + (number % 26) as u8; number * 17 % 700]) },
                    headers,
                    timestamp: Utc.timestamp_millis_opt(base + sent * 1000).unwrap(),
                });
                sent += 1;
            }
            partition.produce(records, codec).await.unwrap();
        }
    }
    println!("{{\"sent\": {sent}, \"ways\": [{}]}}", ways.join(", "));
}
