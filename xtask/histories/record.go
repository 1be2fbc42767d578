package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	blockBytes = 4096
	clients    = 4
	// Operations of a client between two kills, at most (chosen: the judge's work grows with them).
	operationsMost = 150
	// How long the clients may go on before a kill (chosen: from none answered to all).
	lifeMost = 120 * time.Millisecond
	// How long a server may take to recover.
	startLimit = 60 * time.Second
)

// How a client writes a transaction.
type manner int

const (
	// In one request.
	whole manner = iota
	// Block by block, though it says that it is one.
	inPieces
)

// A drive in an image, and who uses it.
type recorder struct {
	program, folder string
	manner          manner
	began           time.Time
	numbers         atomic.Uint64
	mutex           sync.Mutex
	history         []operation
	// Of the last life: what was not answered.
	open []operation
}

// Records a history on a drive of its own.
func record(program string, seed int64, manner manner) ([]operation, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "histories")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	format := exec.Command(program, "format", "a.img", "--drive", "tiny",
		"--set", "chunks_per_pu=64", "--set", "sectors_per_chunk=64")
	format.Dir = folder
	if said, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the drive cannot be made: %s", said)
	}
	recorder := &recorder{program: program, folder: folder, manner: manner, began: time.Now()}
	random := rand.New(rand.NewSource(seed))
	for kill := 0; kill <= killsOfHistory; kill++ {
		if err := recorder.live(random, kill == killsOfHistory); err != nil {
			return nil, err
		}
	}
	sort.SliceStable(recorder.history, func(a, b int) bool { return recorder.history[a].ret < recorder.history[b].ret })
	return recorder.history, nil
}

// A life of the server: it recovers, one reads everything, all ask at random, and it is killed. The last life only reads.
func (recorder *recorder) live(random *rand.Rand, isLast bool) error {
	server, first, err := recorder.start()
	if err != nil {
		return err
	}
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	if err := recorder.read(first, 0, 0, blocks); err != nil {
		return err
	}
	recovered := recorder.history[len(recorder.history)-1].call
	// What the kill before cut was there, or was not, when that read was asked.
	for _, cut := range recorder.open {
		cut.ret = recovered
		recorder.history = append(recorder.history, cut)
	}
	recorder.open = nil
	if isLast {
		return first.stream.Close()
	}
	var group sync.WaitGroup
	failures := make(chan error, clients)
	for client := 0; client < clients; client++ {
		seed := random.Int63()
		connection := first
		if client > 0 {
			if connection, err = dial(recorder.socket()); err != nil {
				return err
			}
		}
		group.Add(1)
		go func(client int) {
			defer group.Done()
			defer connection.stream.Close()
			if err := recorder.use(connection, client, rand.New(rand.NewSource(seed))); err != nil {
				failures <- err
			}
		}(client)
	}
	time.Sleep(time.Duration(random.Int63n(int64(lifeMost))))
	server.Process.Kill()
	group.Wait()
	close(failures)
	return <-failures
}

func (recorder *recorder) socket() string { return filepath.Join(recorder.folder, "s") }

// Starts the server; gives it and its first connection, once it has recovered.
func (recorder *recorder) start() (*exec.Cmd, *nbd, error) {
	os.Remove(recorder.socket())
	var said bytes.Buffer
	server := exec.Command(recorder.program, "serve", "--nbd", "unix:s", "--drive", "a.img", "--target", "ox-block")
	server.Dir, server.Stderr = recorder.folder, &said
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	for limit := time.Now().Add(startLimit); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		if connection, err := dial(recorder.socket()); err == nil {
			return server, connection, nil
		}
	}
	server.Process.Kill()
	server.Wait()
	return nil, nil, fmt.Errorf("the server did not listen within %s; it said: %s", startLimit, said.String())
}

func (recorder *recorder) now() int64 { return time.Since(recorder.began).Nanoseconds() }

// Asks at random until the server is gone.
func (recorder *recorder) use(connection *nbd, client int, random *rand.Rand) error {
	for asked := 0; asked < operationsMost; asked++ {
		first := random.Intn(blocks)
		count := 1 + random.Intn(blocks-first)
		var err error
		if random.Intn(3) == 0 {
			err = recorder.read(connection, client, first, count)
		} else {
			err = recorder.write(connection, client, first, count)
		}
		var refused failed
		if errors.As(err, &refused) || errors.Is(err, errTorn) {
			return err
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

func (recorder *recorder) note(of operation) {
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	recorder.history = append(recorder.history, of)
}

func (recorder *recorder) write(connection *nbd, client, first, count int) error {
	number := recorder.numbers.Add(1)
	data := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, number), count*blockBytes/8)
	of := operation{client: client, isWrite: true, first: first, count: count, number: number, call: recorder.now()}
	var err error
	if recorder.manner == whole {
		err = connection.ask(commandWrite, uint64(first*blockBytes), data)
	} else {
		for block := 0; block < count && err == nil; block++ {
			err = connection.ask(commandWrite, uint64((first+block)*blockBytes), data[:blockBytes])
		}
	}
	of.ret, of.isAnswered = recorder.now(), err == nil
	if err == nil {
		recorder.note(of)
		return nil
	}
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	recorder.open = append(recorder.open, of)
	return err
}

var errTorn = errors.New("it does not hold one number from its first byte to its last")

// Reads blocks; each must hold one number from its first byte to its last.
func (recorder *recorder) read(connection *nbd, client, first, count int) error {
	data := make([]byte, count*blockBytes)
	of := operation{client: client, first: first, count: count, isAnswered: true, call: recorder.now()}
	if err := connection.ask(commandRead, uint64(first*blockBytes), data); err != nil {
		return err
	}
	of.ret = recorder.now()
	for block := 0; block < count; block++ {
		held := data[block*blockBytes : (block+1)*blockBytes]
		if !bytes.Equal(held, bytes.Repeat(held[:8], blockBytes/8)) {
			return fmt.Errorf("block %d: %w", first+block, errTorn)
		}
		of.found[first+block] = binary.LittleEndian.Uint64(held)
	}
	recorder.note(of)
	return nil
}
