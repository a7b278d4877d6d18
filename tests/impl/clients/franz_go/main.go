package main

import (
	"context"
	"fmt"
	"github.com/twmb/franz-go/pkg/kgo"
	"os"
	"time"
)

func main() {
	b := os.Args[1]
	cl, err := kgo.NewClient(kgo.SeedBrokers(b), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("gt"), kgo.ConsumerGroup("gg"), kgo.ConsumeTopics("gt"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		panic(err)
	}
	defer cl.Close()
	ctx, c := context.WithTimeout(context.Background(), 20*time.Second)
	defer c()
	for i := 0; i < 200; i++ {
		if err := cl.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(i))).FirstErr(); err != nil {
			panic(err)
		}
	}
	n := 0
	for n < 200 {
		f := cl.PollFetches(ctx)
		if e := f.Errors(); len(e) > 0 {
			panic(fmt.Sprint(e))
		}
		n += f.NumRecords()
	}
	fmt.Println("franz-go", n, cl.CommitUncommittedOffsets(ctx))
}
