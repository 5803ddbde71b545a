// Kubernetes' control plane in one binary: the first argument says which part of it to be.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	// Both parts report their metrics and versions by what these register.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
}

func main() {
	binary := filepath.Base(os.Args[0])
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: %s etcd|kube-apiserver|kube-controller-manager FLAGS\n", binary)
		os.Exit(2)
	}
	part := os.Args[1]
	// Each part reads os.Args as if it were a program of its own.
	os.Args = os.Args[1:]
	if part == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[part]
	if !known {
		fmt.Fprintf(os.Stderr, "%s has no part %q\n", binary, part)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
