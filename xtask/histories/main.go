// Histories of clients of a served ox-block that is killed again and again, judged by porcupine.
//
//	go run . PATH/TO/ocssd HISTORIES [SEED]
//
// Every write is a transaction: whole or absent, and there for good once it is answered. Porcupine (Athalye,
// github.com/anishathalye/porcupine) is a checker of linearizability that knows nothing of ours; it is asked whether there is an
// order of all transactions that explains what all clients were told (model.go). At the end a client tears its own transactions
// into single blocks and says that they were whole: porcupine must find that out, or what it said before is worth nothing.
package main

import (
	"fmt"
	"os"
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
	if len(arguments) < 2 || len(arguments) > 3 {
		return fmt.Errorf("usage: histories PATH/TO/ocssd HISTORIES [SEED]")
	}
	count, err := strconv.Atoi(arguments[1])
	if err != nil || count < 1 {
		return fmt.Errorf("HISTORIES should be a number of at least 1, but is %q", arguments[1])
	}
	seed := int64(1)
	if len(arguments) == 3 {
		if seed, err = strconv.ParseInt(arguments[2], 10, 64); err != nil {
			return fmt.Errorf("SEED should be a number, but is %q", arguments[2])
		}
	}
	if err := judgeKnownHistories(); err != nil {
		return err
	}
	sums := tally{}
	for number := 0; number < count; number++ {
		history, err := record(arguments[0], seed+int64(number), whole)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed+int64(number), err)
		}
		if err := expectLegal(history); err != nil {
			return fmt.Errorf("seed %d: %w", seed+int64(number), err)
		}
		sums.add(history)
	}
	if sums.cut == 0 || sums.answered == 0 {
		return fmt.Errorf("no kill met a transaction, so this showed nothing: %+v", sums)
	}
	torn := 0
	const tornMost = 20
	for number := int64(0); torn == 0; number++ {
		if number == tornMost {
			return fmt.Errorf("porcupine called %d histories of torn transactions legal", tornMost)
		}
		history, err := record(arguments[0], seed+number, inPieces)
		if err != nil {
			return fmt.Errorf("torn on purpose, seed %d: %w", seed+number, err)
		}
		if !isLegal(history) {
			torn++
			fmt.Printf("transactions torn on purpose: history %d of at most %d was called illegal\n", number+1, tornMost)
		}
	}
	fmt.Printf("seed %d: %d histories of %d kills are legal: %d transactions and %d reads answered, %d cut by a kill\n",
		seed, count, killsOfHistory, sums.answered, sums.reads, sums.cut)
	return nil
}

// What histories had.
type tally struct{ answered, reads, cut int }

func (sums *tally) add(history []operation) {
	for _, operation := range history {
		switch {
		case !operation.isWrite:
			sums.reads++
		case operation.isAnswered:
			sums.answered++
		default:
			sums.cut++
		}
	}
}
