package level0

// The suite: an index, and a file for each case, in a folder, in an archive, or inside this program.

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Format is the version of the format that this runner knows.
const Format = 6

const mostUnpacked = 1 << 28

//go:embed cases.tar.gz
var inside []byte

// Suite is index.json with its cases.
type Suite struct {
	Format int
	Suite  struct{ Version, Digest string }
	Timing struct {
		RetryPauseMs int64 `json:"retry_pause_ms"`
		LaterPauseMs int64 `json:"later_pause_ms"`
		QuietMs      int64 `json:"quiet_ms"`
		StepMs       int64 `json:"step_ms"`
	}
	Entries []struct{ File, Name string } `json:"cases"`
	Probe   Step
	CleanUp Step `json:"clean_up"`
	Layouts map[string]map[string][]Field
	Cases   []*Case `json:"-"`
}

// Title tells suites apart.
func (suite *Suite) Title() string {
	return fmt.Sprintf("suite %s (%.12s), %d cases", suite.Suite.Version, suite.Suite.Digest, len(suite.Cases))
}

// Inside is the suite that was built into this program.
func Inside() (*Suite, error) { return unpacked(inside) }

// Load reads a folder of `kspec conformance generate --out`, or an archive of `--archive`.
func Load(place string) (*Suite, error) {
	found, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	if found.IsDir() {
		return loaded(func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(place, name)) })
	}
	data, err := os.ReadFile(place)
	if err != nil {
		return nil, err
	}
	suite, err := unpacked(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return suite, nil
}

// unpacked reads an archive, which is not trusted.
func unpacked(data []byte) (*Suite, error) {
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(io.LimitReader(plain, mostUnpacked)); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if head.Typeflag == tar.TypeReg {
			if files[path.Base(head.Name)], err = io.ReadAll(archive); err != nil {
				return nil, err
			}
		}
	}
	return loaded(func(name string) ([]byte, error) {
		content, is := files[name]
		if !is {
			return nil, fmt.Errorf("there is no %s", name)
		}
		return content, nil
	})
}

func loaded(read func(string) ([]byte, error)) (*Suite, error) {
	suite := &Suite{}
	if err := decode(read, "index.json", suite); err != nil {
		return nil, err
	}
	if suite.Format != Format {
		return nil, fmt.Errorf("the cases have format %d, and this runner knows %d", suite.Format, Format)
	}
	for _, entry := range suite.Entries {
		one := &Case{}
		if err := decode(read, entry.File, one); err != nil {
			return nil, err
		}
		suite.Cases = append(suite.Cases, one)
	}
	return suite, nil
}

func decode(read func(string) ([]byte, error), name string, into any) error {
	data, err := read(name)
	if err != nil {
		return err
	}
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber() // they have 64 bits
	if err := numbers.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Named gives the cases whose names begin so; a name in full means that case alone.
func (suite *Suite) Named(wanted string) (found []*Case) {
	for _, one := range suite.Cases {
		if one.Name == wanted {
			return []*Case{one}
		}
		if strings.HasPrefix(one.Name, wanted) {
			found = append(found, one)
		}
	}
	return found
}
