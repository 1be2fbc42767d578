// Histories of clients of a served target that is killed again and again, judged by porcupine.
//
//	go run . PATH/TO/ocssd SUBJECT HISTORIES [SEED]
//
// SUBJECT is ox-block, by NBD, or kv, by Redis' protocol. Every change is a transaction: whole or absent, and there for good once
// it is answered. Porcupine (Athalye, github.com/anishathalye/porcupine) is a checker of linearizability that knows nothing of
// ours; it is asked whether there is an order of all transactions that explains what all clients were told (model.go). At the end
// a client tears its own transactions into single blocks or keys and says that they were whole: porcupine must find that out, or
// what it said before is worth nothing.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Kills in a history, after each of which the clients go on (chosen: a history is judged in well below a second).
const killsOfHistory = 3

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "histories:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 3 || len(arguments) > 4 {
		return fmt.Errorf("usage: histories PATH/TO/ocssd ox-block|kv HISTORIES [SEED]")
	}
	place := slices.IndexFunc(subjects, func(of subject) bool { return of.name == arguments[1] })
	if place < 0 {
		return fmt.Errorf("SUBJECT should be ox-block or kv, but is %q", arguments[1])
	}
	count, err := strconv.Atoi(arguments[2])
	if err != nil || count < 1 {
		return fmt.Errorf("HISTORIES should be a number of at least 1, but is %q", arguments[2])
	}
	seed := int64(1)
	if len(arguments) == 4 {
		if seed, err = strconv.ParseInt(arguments[3], 10, 64); err != nil {
			return fmt.Errorf("SEED should be a number, but is %q", arguments[3])
		}
	}
	if err := judgeKnownHistories(); err != nil {
		return err
	}
	of := subjects[place]
	sums := tally{}
	for number := seed; number < seed+int64(count); number++ {
		history, err := record(arguments[0], of, number, whole)
		if err == nil {
			err = expectLegal(history)
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", number, err)
		}
		sums.add(history)
	}
	if sums.cut == 0 || sums.answered == 0 {
		return fmt.Errorf("no kill met a transaction, so this showed nothing: %+v", sums)
	}
	if err := tearOnPurpose(arguments[0], of, seed); err != nil {
		return err
	}
	fmt.Printf("seed %d: %d histories of %d kills are legal: %d transactions (%s) and %d reads answered, %d cut by a kill\n",
		seed, count, killsOfHistory, sums.answered, of.transactions, sums.reads, sums.cut)
	return nil
}

// Transactions that a client tears must be found.
func tearOnPurpose(program string, subject subject, seed int64) error {
	const tornMost = 20
	for number := int64(0); number < tornMost; number++ {
		history, err := record(program, subject, seed+number, inPieces)
		if err != nil {
			return fmt.Errorf("torn on purpose, seed %d: %w", seed+number, err)
		}
		if !isLegal(history) {
			fmt.Printf("transactions torn on purpose: history %d of at most %d was called illegal\n", number+1, tornMost)
			return nil
		}
	}
	return fmt.Errorf("porcupine called %d histories of torn transactions legal", tornMost)
}

// What histories had.
type tally struct{ answered, reads, cut int }

func (sums *tally) add(history []operation) {
	for _, operation := range history {
		switch {
		case operation.verb == reads:
			sums.reads++
		case operation.isAnswered:
			sums.answered++
		default:
			sums.cut++
		}
	}
}
