// Writes with the crate rdkafka: codecs, an idempotent producer, transactions. rdkafka BOOTSTRAP TOPIC plain|all
use rdkafka::config::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer, DefaultProducerContext};
use std::time::Duration;

type Sender = ThreadedProducer<DefaultProducerContext>;

fn send(producer: &Sender, topic: &str, count: usize) {
    for number in 0..count {
        let value = vec![b'a' + (number % 26) as u8; number * 13 % 500];
        let key = format!("key-{number}");
        let headers = OwnedHeaders::new()
            .insert(Header { key: "source", value: Some("rust") })
            .insert(Header { key: "empty", value: None::<&[u8]> });
        let mut record = BaseRecord::to(topic).partition(0).payload(&value).key(&key);
        if number % 3 == 0 {
            record = record.headers(headers);
        }
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(Duration::from_secs(20)).unwrap();
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let timeout = Duration::from_secs(20);
    let mut ways = vec![];
    let mut sent = 0;
    for (codec, idempotent) in [("none", "false"), ("gzip", "false"), ("none", "true"), ("gzip", "true")] {
        if idempotent == "true" && words[3] == "plain" {
            continue;
        }
        let producer: Sender = ClientConfig::new()
            .set("bootstrap.servers", &words[1])
            .set("compression.type", codec)
            .set("enable.idempotence", idempotent)
            .set("linger.ms", "20")
            .create()
            .unwrap();
        send(&producer, &words[2], 80);
        sent += 80;
        ways.push(format!("\"{codec}{}\"", if idempotent == "true" { " idempotent" } else { "" }));
    }
    if words[3] != "plain" {
        let producer: Sender = ClientConfig::new()
            .set("bootstrap.servers", &words[1])
            .set("transactional.id", format!("rust-{}", words[2]))
            .create()
            .unwrap();
        producer.init_transactions(timeout).unwrap();
        for number in 0..6 {
            producer.begin_transaction().unwrap();
            send(&producer, &words[2], 9);
            sent += 9;
            if number % 3 == 2 {
                producer.abort_transaction(timeout).unwrap();
            } else {
                producer.commit_transaction(timeout).unwrap();
            }
        }
        ways.push("\"transactions\"".to_owned());
    }
    println!("{{\"sent\": {sent}, \"ways\": [{}]}}", ways.join(", "));
}
