package level0

// Which versions of its requests a case is run in: the newest that both sides know, the oldest, or each in its turn.

import (
	"fmt"
	"slices"
	"strings"
)

// Choices of versions.
var Choices = []string{"newest", "oldest", "all"}

// shared is the oldest and the newest version of a step that both sides know; none, if the first is above the second.
func (t *Target) shared(step *Step) (oldest, newest int) {
	offered, is := t.offered[step.Key]
	if !is {
		return 0, -1
	}
	return max(step.Versions[0], offered[0]), min(step.Versions[1], offered[1])
}

// InVersions gives the cases as they are to be run. One that the target lacks something for stays as it is.
func (t *Target) InVersions(cases []*Case, choice string) []*Case {
	if choice == "newest" {
		return cases
	}
	var found []*Case
	for _, one := range cases {
		found = append(found, t.variants(one, choice)...)
	}
	return found
}

// variants are the case in its oldest versions, or so often that each version of each of its requests is used. All go down
// together from the newest one, and whoever has no older one stays at its oldest. What only prepares a case is always of the
// newest version: later steps need what it tells.
func (t *Target) variants(one *Case, choice string) []*Case {
	var moves []int
	most := 1
	for number := range one.Steps {
		step := &one.Steps[number]
		oldest, newest := t.shared(step)
		if step.Setup || step.Raw || (step.Optional && newest < oldest) {
			continue
		}
		if newest < oldest {
			return []*Case{one}
		}
		moves = append(moves, number)
		most = max(most, newest-oldest+1)
	}
	if choice == "oldest" {
		return []*Case{t.pinned(one, moves, most-1)}
	}
	var found []*Case
	for older := 0; older < most; older++ {
		found = append(found, t.pinned(one, moves, older))
	}
	return found
}

// pinned is the case with each of these steps so many versions below its newest one; the name says the versions.
func (t *Target) pinned(one *Case, moves []int, older int) *Case {
	steps := slices.Clone(one.Steps)
	var said []string
	for _, number := range moves {
		step := &steps[number]
		oldest, newest := t.shared(step)
		version := max(newest-older, oldest)
		step.Versions = []int{version, version}
		if word := fmt.Sprintf("%s %d", step.API, version); !slices.Contains(said, word) {
			said = append(said, word)
		}
	}
	chosen := *one
	chosen.Name, chosen.Steps, chosen.plain = fmt.Sprintf("%s (%s)", one.Name, strings.Join(said, ", ")), steps, one.Name
	return &chosen
}
