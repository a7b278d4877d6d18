// kfake, the broker that franz-go's tests use, as a process: `go run . PORT`. It listens on the loopback, and says so.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: PORT")
		os.Exit(2)
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cluster := kfake.MustCluster(kfake.NumBrokers(1), kfake.Ports(port))
	defer cluster.Close()
	fmt.Println("ready", cluster.ListenAddrs()[0])
	select {}
}
