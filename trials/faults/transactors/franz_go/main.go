// Transactional clients in threads of one process; trials/faults/transactors/load.py says what they print.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	commits  = 0.85
	idle     = 4 * time.Second
	patience = 60 * time.Second
)

var (
	servers, topic, output      string
	partitions, accounts, pause int
	stopping                    atomic.Bool
	printing                    sync.Mutex
)

func number(text string) int {
	found, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return found
}

func say(fields ...any) {
	var told []string
	for _, field := range fields {
		told = append(told, strings.ReplaceAll(fmt.Sprint(field), "\n", " "))
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(strings.Join(told, "\t"))
}

type transactor struct {
	name, mode  string
	random      *rand.Rand
	number      int
	transaction string
	busy, began time.Time
	client      *kgo.Client
	session     *kgo.GroupTransactSession
}

func (t *transactor) isDone() bool {
	return stopping.Load() && (t.mode != "transform" || time.Since(t.busy) > idle)
}

func (t *transactor) options() []kgo.Opt {
	made := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ClientID(t.name),
		kgo.TransactionalID(t.name),
		kgo.TransactionTimeout(20 * time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(500 * time.Millisecond),
		kgo.MetadataMaxAge(2 * time.Second),
		kgo.ProduceRequestTimeout(5 * time.Second),
		kgo.RequestTimeoutOverhead(2 * time.Second),
		kgo.RecordDeliveryTimeout(30 * time.Second),
		kgo.RetryTimeout(30 * time.Second),
	}
	if t.mode == "transform" {
		made = append(made,
			kgo.ConsumerGroup(topic+"-group"),
			kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RequireStableFetchOffsets(),
			kgo.SessionTimeout(6*time.Second),
			kgo.HeartbeatInterval(time.Second),
			kgo.FetchMaxWait(100*time.Millisecond),
			kgo.Balancers(kgo.RangeBalancer()),
		)
	}
	return made
}

func (t *transactor) run() {
	t.busy = time.Now()
	for !t.isDone() {
		if err := t.live(); err != nil {
			say("anew", t.name, err)
			time.Sleep(500 * time.Millisecond)
		}
	}
}

// live goes on until told to stop, or until the client can do nothing more.
func (t *transactor) live() (err error) {
	if t.mode == "transform" {
		t.session, err = kgo.NewGroupTransactSession(t.options()...)
		if err != nil {
			return err
		}
		t.client = t.session.Client()
		defer t.session.Close()
	} else {
		t.client, err = kgo.NewClient(t.options()...)
		if err != nil {
			return err
		}
		defer t.client.Close()
	}
	for !t.isDone() {
		if t.mode == "transform" {
			err = t.transform()
		} else {
			err = t.once()
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	return nil
}

func (t *transactor) begin() {
	t.number++
	t.transaction = fmt.Sprintf("%s.%d", t.name, t.number)
	t.began = time.Now()
	say("begun", t.transaction)
}

func (t *transactor) ended(kind string, err error) {
	told := ""
	if err != nil {
		told = err.Error()
	}
	say("ended", t.transaction, kind, time.Since(t.began).Milliseconds(), told)
}

func (t *transactor) send(partition int, value string, failed *atomic.Pointer[error]) {
	own := t.transaction
	say("sent", own, partition, value)
	target := topic
	if t.mode == "transform" {
		target = output
	}
	record := &kgo.Record{Topic: target, Partition: int32(partition), Value: []byte(value)}
	t.client.Produce(context.Background(), record, func(stored *kgo.Record, err error) {
		if err != nil {
			failed.Store(&err)
		} else {
			say("stored", own, partition, value, stored.Offset)
		}
	})
}

func (t *transactor) once() error {
	t.begin()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var failed atomic.Pointer[error]
	if err := t.client.BeginTransaction(); err != nil {
		t.ended("refused", err)
		return err
	}
	if t.mode == "bank" {
		giver := t.random.Intn(accounts)
		taker := (giver + 1 + t.random.Intn(accounts-1)) % accounts
		amount := 1 + t.random.Intn(100)
		t.send(giver%partitions, fmt.Sprintf("%s|%d|%d", t.transaction, giver, -amount), &failed)
		t.send(taker%partitions, fmt.Sprintf("%s|%d|%d", t.transaction, taker, amount), &failed)
	} else {
		for place, count := 0, 2+t.random.Intn(3); place < count; place++ {
			t.send(t.random.Intn(partitions), fmt.Sprintf("%s/%d", t.transaction, place), &failed)
		}
	}
	flushed := t.client.Flush(ctx)
	if told := failed.Load(); told != nil {
		flushed = *told
	}
	if flushed == nil && t.random.Float64() < commits {
		err := t.client.EndTransaction(ctx, kgo.TryCommit)
		if err == nil {
			t.ended("acknowledged", nil)
			return nil
		}
		if !errors.Is(err, kerr.OperationNotAttempted) && !errors.Is(err, kerr.TransactionAbortable) {
			t.ended("unknown", err)
			return err
		}
		flushed = err
	}
	if err := t.client.AbortBufferedRecords(ctx); err != nil {
		t.ended("refused", err)
		return err
	}
	if err := t.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.ended("refused", err)
		return err
	}
	t.ended("refused", flushed)
	return nil
}

func (t *transactor) transform() error {
	waiting, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	fetched := t.session.PollRecords(waiting, 20)
	records := fetched.Records()
	if len(records) == 0 {
		return nil
	}
	t.busy = time.Now()
	t.begin()
	for _, one := range records {
		say("consumed", t.transaction, one.Partition, one.Offset, string(one.Value))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := t.session.Begin(); err != nil {
		t.ended("refused", err)
		return err
	}
	var failed atomic.Pointer[error]
	for _, one := range records {
		t.send(int(one.Partition), fmt.Sprintf("%s/%d-%d", t.transaction, one.Partition, one.Offset), &failed)
	}
	flushed := t.client.Flush(ctx)
	if told := failed.Load(); told != nil {
		flushed = *told
	}
	committed, err := t.session.End(ctx, kgo.TransactionEndTry(flushed == nil))
	switch {
	case committed:
		t.ended("acknowledged", nil)
	case err != nil && flushed == nil:
		t.ended("unknown", err)
	default:
		t.ended("refused", err)
	}
	return err
}

func main() {
	given := os.Args[1:]
	servers, topic, output = given[0], given[1], given[2]
	partitions, accounts, pause = number(given[3]), number(given[4]), number(given[5])
	var all sync.WaitGroup
	for place, one := range given[7:] {
		name, mode, _ := strings.Cut(one, "=")
		random := rand.New(rand.NewSource(int64(1000*number(given[6]) + place)))
		client := &transactor{name: name, mode: mode, random: random}
		all.Add(1)
		go func() {
			defer all.Done()
			client.run()
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	stopping.Store(true)
	all.Wait()
}
