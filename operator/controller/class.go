package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// specOf is a class as the gateways are told of it. What a policy leaves out has the gateways' defaults.
func specOf(class *decide.Class) api.ClassSpec {
	spec := api.ClassSpec{
		Name: class.Name, Ladder: class.Ladder.String(), Default: class.Default.String(), Prefixes: slices.Sorted(slices.Values(class.Prefixes)),
		HalfLife: class.HalfLife.String(), Dwell: class.Dwell.String(), Prices: class.Prices,
		Expected: class.Expected, ExpectMean: class.ExpectMean, HotKeys: class.HotKeys.Spec(),
	}
	if class.PackBelow != nil {
		spec.PackBelow = bytesText(*class.PackBelow)
	}
	if class.PackDelay != nil {
		spec.PackDelay = class.PackDelay.String()
	}
	if class.GroupBytes != nil {
		spec.GroupBytes = bytesText(*class.GroupBytes)
	}
	if class.DeadAtMost != nil {
		spec.DeadAtMost = deadAtMost(*class.DeadAtMost)
	}
	spec.PackMode, spec.RepairOnRead = packMode(class.PackMode), repairOnRead(class.Repair)
	spec.KeepVersions = class.Keep
	if class.Expire > 0 {
		spec.ExpireAfter = class.Expire.String()
	}
	return spec
}

// packMode is what a gateway is told of when small objects wait: nothing of the default, as in deadAtMost.
func packMode(mode api.PackMode) api.PackMode {
	if mode == api.PackAuto {
		return ""
	}
	return mode
}

// repairOnRead is what a gateway is told of repairs by reads: nothing of the default, as in deadAtMost.
func repairOnRead(mode api.RepairOnRead) api.RepairOnRead {
	if mode == api.DefaultRepairOnRead {
		return ""
	}
	return mode
}

// deadAtMost is what a gateway is told of how much may be dead: nothing of the default, as gateways of earlier releases do not know
// the field, nor of zero, which is what they say.
func deadAtMost(percent int) *int {
	if percent == 0 || percent == api.DefaultDeadAtMost {
		return nil
	}
	return &percent
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + "B" }

// specOfInfo is the class in force as one would declare it.
func specOfInfo(info *api.ClassInfo) api.ClassSpec {
	return api.ClassSpec{
		Name: info.Name, Ladder: info.Ladder, Default: info.Default, Mode: info.Mode, Prefixes: info.Prefixes,
		PackBelow: bytesText(info.PackBelow), PackDelay: info.PackDelay, GroupBytes: bytesText(info.GroupBytes),
		DeadAtMost: deadAtMost(info.DeadAtMost), PackMode: packMode(info.PackMode), RepairOnRead: repairOnRead(info.RepairOnRead),
		HotKeys: info.HotKeys, HalfLife: info.HalfLife, Dwell: info.Dwell, Prices: info.Prices,
		Expected: info.Expected, ExpectMean: info.ExpectMean, KeepVersions: info.KeepVersions, ExpireAfter: info.ExpireAfter,
	}
}

// inForce reports whether a class is as it was declared.
func inForce(info *api.ClassInfo, class *decide.Class) bool {
	return info.Origin == api.ClassFromAPI && info.Ladder == class.Ladder.String() && info.Default == class.Default.String() &&
		slices.Equal(slices.Sorted(slices.Values(info.Prefixes)), slices.Sorted(slices.Values(class.Prefixes))) &&
		sameDuration(info.HalfLife, class.HalfLife) && sameDuration(info.Dwell, class.Dwell) && samePacking(info, class) &&
		info.KeepVersions == class.Keep && sameDuration(cmp.Or(info.ExpireAfter, "0s"), class.Expire) &&
		(class.Repair == "" || repairOnRead(class.Repair) == repairOnRead(info.RepairOnRead)) &&
		reflect.DeepEqual(info.Prices, class.Prices) && reflect.DeepEqual(info.HotKeys, class.HotKeys.Spec()) &&
		info.Expected == class.Expected && info.ExpectMean == class.ExpectMean
}

func samePacking(info *api.ClassInfo, class *decide.Class) bool {
	return (class.PackBelow == nil || *class.PackBelow == info.PackBelow) && (class.GroupBytes == nil || *class.GroupBytes == info.GroupBytes) &&
		(class.PackDelay == nil || sameDuration(info.PackDelay, *class.PackDelay)) &&
		(class.PackMode == "" || packMode(class.PackMode) == packMode(info.PackMode)) &&
		(class.DeadAtMost == nil || reflect.DeepEqual(deadAtMost(info.DeadAtMost), deadAtMost(*class.DeadAtMost)))
}

func sameDuration(text string, wanted time.Duration) bool {
	parsed, err := time.ParseDuration(text)
	return err == nil && parsed == wanted
}

// pushClass makes the gateways have the class as the policy declares it. Prefixes that a class has which no policy
// declares go over to this one; such classes are those of class files and of policies that are gone.
func (r *PolicyReconciler) pushClass(ctx context.Context, policy *v1alpha1.RedundancyPolicy, backend *v1alpha1.StorageBackend, class *decide.Class, seen *gateways.Snapshot) error {
	if info, there := seen.Classes[class.Name]; there && inForce(&info, class) && policy.Status.ObservedGeneration == policy.Generation {
		return nil
	}
	observer, err := r.observers.Of(backend)
	if err != nil {
		return err
	}
	var keeper gateways.ClassKeeper = observer.Gateway()
	for _, info := range seen.Classes {
		if info.Name == class.Name {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(info.Prefixes), func(prefix string) bool { return slices.Contains(class.Prefixes, prefix) })
		if len(rest) == len(info.Prefixes) {
			continue
		}
		spec := specOfInfo(&info)
		spec.Prefixes = rest
		put, err := keeper.PutClass(ctx, spec)
		if err != nil {
			return fmt.Errorf("taking prefixes from class %s: %w", info.Name, err)
		}
		observer.Learn(put.Name, &put)
	}
	put, err := keeper.PutClass(ctx, specOf(class))
	if err != nil {
		return fmt.Errorf("declaring class %s: %w", class.Name, err)
	}
	observer.Learn(put.Name, &put)
	return nil
}

// dropClass removes a class that no policy declares any more. One that has objects stays as it is, and so do they.
func (r *PolicyReconciler) dropClass(ctx context.Context, backend *v1alpha1.StorageBackend, name string) error {
	claimants, err := policiesOf(ctx, r.client, policiesByClaim, classClaim(backend.Name, name))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(claimants, func(p v1alpha1.RedundancyPolicy) bool { return p.DeletionTimestamp == nil }) {
		return nil
	}
	observer, err := r.observers.Of(backend)
	if err != nil {
		return err
	}
	var keeper gateways.ClassKeeper = observer.Gateway()
	classes, err := keeper.Classes(ctx)
	if err != nil {
		return fmt.Errorf("asking for the classes: %w", err)
	}
	if !slices.ContainsFunc(classes, func(info api.ClassInfo) bool { return info.Name == name && info.Origin == api.ClassFromAPI }) {
		return nil
	}
	err = keeper.DeleteClass(ctx, name)
	switch {
	case err == nil || errors.Is(err, api.ErrNotFound):
		observer.Learn(name, nil)
	case !errors.Is(err, api.ErrConflict):
		return fmt.Errorf("removing class %s: %w", name, err)
	}
	return nil
}
