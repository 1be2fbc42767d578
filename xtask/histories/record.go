package main

import (
	"bytes"
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
	clients = 4
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
	// Place by place, though it says that it is one.
	inPieces
)

// A drive in an image, and who uses it.
type recorder struct {
	program, folder string
	subject         subject
	manner          manner
	// Places can be absent.
	isKeyed bool
	began   time.Time
	numbers atomic.Uint64
	mutex   sync.Mutex
	history []operation
	// Of the last life: what was not answered.
	open []operation
}

// Records a history on a drive of its own.
func record(program string, subject subject, seed int64, manner manner) ([]operation, error) {
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
	recorder := &recorder{program: program, folder: folder, subject: subject, manner: manner, began: time.Now()}
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
	_, recorder.isKeyed = first.(keyed)
	if err := recorder.ask(first, operation{verb: reads, count: places}); err != nil {
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
		first.close()
		return nil
	}
	var group sync.WaitGroup
	failures := make(chan error, clients)
	for client := 0; client < clients; client++ {
		seed := random.Int63()
		connection := first
		if client > 0 {
			if connection, err = recorder.subject.dial(recorder.socket()); err != nil {
				return err
			}
		}
		group.Add(1)
		go func(client int) {
			defer group.Done()
			defer connection.close()
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
func (recorder *recorder) start() (*exec.Cmd, connection, error) {
	os.Remove(recorder.socket())
	var said bytes.Buffer
	server := exec.Command(recorder.program, append([]string{"serve", "--drive", "a.img"}, recorder.subject.arguments...)...)
	server.Dir, server.Stderr = recorder.folder, &said
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	for limit := time.Now().Add(startLimit); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		if connection, err := recorder.subject.dial(recorder.socket()); err == nil {
			return server, connection, nil
		}
	}
	server.Process.Kill()
	server.Wait()
	return nil, nil, fmt.Errorf("the server did not listen within %s; it said: %s", startLimit, said.String())
}

func (recorder *recorder) now() int64 { return time.Since(recorder.began).Nanoseconds() }

// Asks at random until the server is gone.
func (recorder *recorder) use(connection connection, client int, random *rand.Rand) error {
	for asked := 0; asked < operationsMost; asked++ {
		err := recorder.ask(connection, recorder.draw(client, random))
		var refused refused
		if errors.As(err, &refused) || errors.Is(err, errTorn) {
			return err
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

// What a client asks next. Of keys, a third of the changes is of one that must be absent, or there, and a sixth are transactions
// that read what they replace.
func (recorder *recorder) draw(client int, random *rand.Rand) operation {
	first := random.Intn(places)
	of := operation{client: client, verb: writes, first: first, count: 1 + random.Intn(places-first)}
	if random.Intn(3) == 0 {
		of.verb = reads
	} else if recorder.isKeyed && random.Intn(3) == 0 {
		of.verb, of.count = [...]verb{adds, removes}[random.Intn(2)], 1
	} else if recorder.isKeyed && random.Intn(4) == 0 {
		of.verb = exchanges
	}
	return of
}

func (recorder *recorder) note(of operation) {
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	recorder.history = append(recorder.history, of)
}

var errTorn = errors.New("it does not hold one number from its first byte to its last")

// Asks, and notes what was asked and told; a change that is not answered is open until the next life.
func (recorder *recorder) ask(connection connection, of operation) error {
	of.call = recorder.now()
	var err error
	switch of.verb {
	case reads:
		var numbers []uint64
		numbers, err = connection.read(of.first, of.count)
		copy(of.found[of.first:], numbers)
	case writes:
		of.number = recorder.numbers.Add(1)
		err = recorder.write(connection, of)
	case adds:
		of.number = recorder.numbers.Add(1)
		of.isDone, err = connection.(keyed).add(of.first, of.number)
	case removes:
		of.isDone, err = connection.(keyed).remove(of.first)
	case exchanges:
		var numbers []uint64
		of.number = recorder.numbers.Add(1)
		numbers, err = connection.(keyed).exchange(of.first, of.count, of.number)
		copy(of.found[of.first:], numbers)
	}
	of.ret, of.isAnswered = recorder.now(), err == nil
	if err == nil {
		recorder.note(of)
	} else if of.verb != reads {
		recorder.mutex.Lock()
		defer recorder.mutex.Unlock()
		recorder.open = append(recorder.open, of)
	}
	return err
}

func (recorder *recorder) write(connection connection, of operation) error {
	if recorder.manner == whole {
		return connection.write(of.first, of.count, of.number)
	}
	for place := of.first; place < of.first+of.count; place++ {
		if err := connection.write(place, 1, of.number); err != nil {
			return err
		}
	}
	return nil
}
