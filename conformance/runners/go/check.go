package main

// Whether an answer is as a case expects it.

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Constraint is what a case says of one field of an answer.
type Constraint struct {
	Path     string
	Versions []int
	OneOf    []any  `json:"one_of"`
	NotEmpty bool   `json:"not_empty"`
	AtLeast  *int64 `json:"at_least"`
	Records  *struct {
		Offsets      []int64
		LeaderEpochs []any `json:"leader_epochs"`
	}
}

func has(versions []int, version int) bool {
	return len(versions) == 0 || versions[0] <= version && version <= versions[1]
}

var steps = regexp.MustCompile(`([a-z_0-9]+)|\[(#|\d+)\]`)

// at finds the field of an answer at a path.
func at(answer any, path string) (any, bool) {
	for _, step := range steps.FindAllStringSubmatch(path, -1) {
		if name := step[1]; name != "" {
			fields, is := answer.(map[string]any)
			if answer, is = fields[name]; !is {
				return nil, false
			}
			continue
		}
		list, is := answer.([]any)
		if !is {
			return nil, false
		}
		if step[2] == "#" {
			answer = int64(len(list))
		} else if number, _ := strconv.Atoi(step[2]); number < len(list) {
			answer = list[number]
		} else {
			return nil, false
		}
	}
	return answer, true
}

// differences tells what of an answer is not as expected.
func differences(expected []Constraint, version int, answer any, known Known) (wrong []string) {
	for _, one := range expected {
		if !has(one.Versions, version) {
			continue
		}
		if what := one.difference(answer, known); what != "" {
			wrong = append(wrong, one.Path+": "+what)
		}
	}
	return wrong
}

func (one *Constraint) difference(answer any, known Known) string {
	found, is := at(answer, one.Path)
	switch {
	case !is && len(one.OneOf) == 1 && one.OneOf[0] == float64(-1): // a tagged field that has its default
		return ""
	case !is:
		return "there is none"
	case one.OneOf != nil:
		return one.notOneOf(found, known)
	case one.AtLeast != nil:
		if number, is := found.(int64); !is || number < *one.AtLeast {
			return fmt.Sprintf("%v, not at least %d", found, *one.AtLeast)
		}
	case one.NotEmpty:
		if slices.Contains([]any{int64(0), int64(-1), "", nil, Bytes(""), Bytes(make([]byte, 16))}, found) {
			return fmt.Sprintf("%v, not something of its own", found)
		}
	case one.Records != nil:
		data, _ := found.(Bytes)
		return one.notTheRecords([]byte(data), known)
	}
	return ""
}

func (one *Constraint) notOneOf(found any, known Known) string {
	if list, is := found.([]any); is {
		found = fmt.Sprint(list) // a list is none of the values
	}
	for _, given := range one.OneOf {
		value, err := known.value(given)
		if err != nil {
			return err.Error()
		}
		if value == found {
			return ""
		}
	}
	return fmt.Sprintf("%v, not one of %v", shown(found), one.OneOf)
}

// notTheRecords looks at the headers of batches (61 bytes): from the first offset on they are to cover these offsets.
func (one *Constraint) notTheRecords(data []byte, known Known) string {
	var offsets, epochs []int64
	for len(data) > 0 {
		if len(data) < 61 || data[16] != 2 {
			return fmt.Sprintf("no batch begins with %x", data)
		}
		base, size := int64(binary.BigEndian.Uint64(data)), 12+int64(int32(binary.BigEndian.Uint32(data[8:])))
		epoch, delta := int64(int32(binary.BigEndian.Uint32(data[12:]))), int64(int32(binary.BigEndian.Uint32(data[23:])))
		if size < 61 || size > int64(len(data)) {
			return fmt.Sprintf("a batch of %d bytes, where %d are left", size, len(data))
		}
		first := int64(0)
		if len(one.Records.Offsets) > 0 {
			first = one.Records.Offsets[0]
		}
		for offset := max(base, first); offset <= base+delta && len(offsets) < 1000; offset++ {
			offsets, epochs = append(offsets, offset), append(epochs, epoch)
		}
		data = data[size:]
	}
	if !slices.Equal(offsets, one.Records.Offsets) {
		return fmt.Sprintf("the records at %v, not at %v", offsets, one.Records.Offsets)
	}
	for number, given := range one.Records.LeaderEpochs {
		if value, err := known.value(given); err != nil || value != epochs[number] {
			return fmt.Sprintf("leader epochs %v, not %v", epochs, one.Records.LeaderEpochs)
		}
	}
	return ""
}

func shown(value any) string {
	if raw, is := value.(Bytes); is {
		return fmt.Sprintf("%x", string(raw))
	}
	return strings.TrimSpace(fmt.Sprintf("%#v", value))
}
