package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Blocks or keys that the clients share (chosen: few, so that transactions meet).
const places = 12

// What all places hold: the number of a transaction each, 0 of what nobody wrote, or was removed.
type content [places]uint64

// What a client asks.
type verb int

const (
	reads verb = iota
	// Gives all of some places a number.
	writes
	// Gives one a number, if it is absent.
	adds
	removes
	// Reads all of some places and gives them a number, as one transaction.
	exchanges
)

// What a client asked and was told, or was not.
type operation struct {
	client       int
	verb         verb
	first, count int
	// The number of the transaction.
	number uint64
	// What was read.
	found content
	// Whether a key was absent that was to be added, or there that was to be removed.
	isDone bool
	// A change may not be: it is cut by a kill, and is whole or absent.
	isAnswered bool
	// Nanoseconds of the client's clock. What a kill cut returns when the server that recovered answers its first request, and not
	// later: nothing of it may show up after that.
	call, ret int64
}

func (operation operation) String() string {
	verb := [...]string{"reads", "writes %d to", "adds %d to", "removes", "exchanges for %d"}[operation.verb]
	if operation.verb != reads && operation.verb != removes {
		verb = fmt.Sprintf(verb, operation.number)
	}
	return fmt.Sprintf("client %d %s places %d to %d (%v)", operation.client, verb, operation.first,
		operation.first+operation.count-1, operation.isDone)
}

// What an operation leaves, and what it must have been told; false of a read of something else.
func (operation operation) on(before content) (after content, isDone, isRight bool) {
	after, isDone = before, true
	for place := operation.first; place < operation.first+operation.count; place++ {
		switch operation.verb {
		case reads:
			if before[place] != operation.found[place] {
				return before, false, false
			}
		case writes:
			after[place] = operation.number
		case adds:
			if isDone = before[place] == 0; isDone {
				after[place] = operation.number
			}
		case removes:
			after[place], isDone = 0, before[place] != 0
		case exchanges:
			if operation.isAnswered && before[place] != operation.found[place] {
				return before, false, false
			}
			after[place] = operation.number
		}
	}
	return after, isDone, true
}

// An order is explained if each operation, done at once and one after the other, gives what was told.
var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{content{}} },
	Step: func(state, input, _ interface{}) []interface{} {
		before, operation := state.(content), input.(operation)
		after, isDone, isRight := operation.on(before)
		switch {
		case !isRight:
			return nil
		case operation.verb != reads && !operation.isAnswered:
			return []interface{}{before, after}
		case (operation.verb == adds || operation.verb == removes) && isDone != operation.isDone:
			return nil
		}
		return []interface{}{after}
	},
}

// How long porcupine may search (chosen: it takes milliseconds).
const judgeLimit = 60 * time.Second

func judge(history []operation) porcupine.CheckResult {
	var operations []porcupine.Operation
	for _, of := range history {
		operations = append(operations, porcupine.Operation{ClientId: of.client, Input: of, Call: of.call, Return: of.ret})
	}
	model := model.ToModel()
	return porcupine.CheckOperationsTimeout(model, operations, judgeLimit)
}

func isLegal(history []operation) bool {
	return judge(history) == porcupine.Ok
}

func expectLegal(history []operation) error {
	switch judge(history) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("porcupine could not judge %d operations within %s", len(history), judgeLimit)
	}
	// Where it goes wrong: the shortest beginning, in the order of answers, that is illegal.
	for end := 1; end <= len(history); end++ {
		if !isLegal(beginning(history, end)) {
			last := history[end-1]
			return fmt.Errorf("no order of transactions explains this history of %d operations; it is illegal from operation %d "+
				"on, in which %s and finds %v", len(history), end, last, last.found)
		}
	}
	return fmt.Errorf("no order of transactions explains this history of %d operations", len(history))
}

// The first so many operations that were answered, and those that were asked meanwhile, as if they never were: what one of them
// does may have been read already.
func beginning(history []operation, end int) []operation {
	now := history[end-1].ret
	known := slices.Clone(history[:end])
	for _, later := range history[end:] {
		if later.call < now && later.verb != reads {
			later.isAnswered = false
			known = append(known, later)
		}
	}
	return known
}
