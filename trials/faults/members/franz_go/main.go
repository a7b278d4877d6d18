// Members of groups by franz-go; trials/faults/members/load.py says what they print.
package main

import (
	"bufio"
	"context"
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
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	servers, topic string
	pause, stays   time.Duration
	staying        atomic.Bool
	stopping       atomic.Bool
	printing       sync.Mutex
)

func say(fields ...any) {
	printing.Lock()
	defer printing.Unlock()
	told := []string{fmt.Sprint(time.Now().UnixMilli())}
	for _, field := range fields {
		told = append(told, strings.ReplaceAll(fmt.Sprint(field), "\n", " "))
	}
	fmt.Println(strings.Join(told, "\t"))
}

type member struct {
	name, protocol string
	number, turn   int64
	random         *rand.Rand
	mutex          sync.Mutex
	owned          map[int32]bool
}

func (m *member) own(_ context.Context, _ *kgo.Client, given map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, partition := range given[topic] {
		if !m.owned[partition] {
			m.owned[partition] = true
			say("owns", m.name, partition)
		}
	}
}

func (m *member) give(_ context.Context, _ *kgo.Client, given map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, partition := range given[topic] {
		if m.owned[partition] {
			delete(m.owned, partition)
			say("gives", m.name, partition)
		}
	}
}

func (m *member) giveAll() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for partition := range m.owned {
		say("gives", m.name, partition)
	}
	m.owned = map[int32]bool{}
}

func (m *member) live() error {
	ctx := context.Background()
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ClientID(m.name),
		kgo.ConsumerGroup(topic + "-" + m.protocol),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(m.own),
		kgo.OnPartitionsRevoked(m.give),
		kgo.OnPartitionsLost(m.give),
		kgo.MetadataMinAge(500 * time.Millisecond),
		kgo.MetadataMaxAge(2 * time.Second),
		kgo.RequestTimeoutOverhead(6 * time.Second),
	}
	if m.protocol == "consumer" {
		ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
		options = append(options, kgo.WithContext(ctx))
	} else {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(2*time.Second))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	defer m.giveAll()
	end := time.Now().Add(time.Duration(float64(stays) * (1 + 2*m.random.Float64())))
	for !stopping.Load() && (staying.Load() || time.Now().Before(end)) {
		waiting, stop := context.WithTimeout(ctx, pause)
		client.PollFetches(waiting)
		stop()
		m.commit(ctx, client)
	}
	return nil
}

func (m *member) commit(ctx context.Context, client *kgo.Client) {
	m.mutex.Lock()
	m.turn++
	offsets := map[int32]kgo.EpochOffset{}
	for partition := range m.owned {
		if len(offsets) < 3 {
			offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: m.turn*1000 + m.number}
		}
	}
	m.mutex.Unlock()
	if len(offsets) == 0 {
		return
	}
	for partition, one := range offsets {
		say("commits", m.name, partition, one.Offset)
	}
	limit, stop := context.WithTimeout(ctx, 15*time.Second)
	defer stop()
	told := map[int32]string{}
	client.CommitOffsetsSync(limit, map[string]map[int32]kgo.EpochOffset{topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			for partition := range offsets {
				told[partition] = "no answer"
				if err != nil {
					told[partition] = err.Error()
				}
			}
			if err != nil || answer == nil {
				return
			}
			for _, of := range answer.Topics {
				for _, one := range of.Partitions {
					told[one.Partition] = ""
					if failed := kerr.ErrorForCode(one.ErrorCode); failed != nil {
						told[one.Partition] = failed.Error()
					}
				}
			}
		})
	for partition, one := range offsets {
		kind, failed := "acknowledged", told[partition]
		if _, answered := told[partition]; !answered || failed != "" {
			kind = "unknown"
		}
		say("committed", m.name, partition, one.Offset, kind, failed)
	}
}

func (m *member) run() {
	for !stopping.Load() {
		if err := m.live(); err != nil {
			say("anew", m.name, err)
			time.Sleep(500 * time.Millisecond)
		}
	}
}

func number(text string) float64 {
	found, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return found
}

func main() {
	given := os.Args[1:]
	servers, topic = given[0], given[1]
	pause = time.Duration(number(given[3])) * time.Millisecond
	stays = time.Duration(number(given[4]) * float64(time.Second))
	var all sync.WaitGroup
	for _, one := range given[5:] {
		parts := strings.Split(one, "=")
		made := &member{name: parts[0], protocol: parts[1], number: int64(number(parts[2])), owned: map[int32]bool{}}
		made.random = rand.New(rand.NewSource(made.number))
		all.Add(1)
		go func() {
			defer all.Done()
			made.run()
		}()
	}
	input := bufio.NewReader(os.Stdin)
	input.ReadString('\n')
	staying.Store(true)
	io.Copy(io.Discard, input)
	stopping.Store(true)
	all.Wait()
}
