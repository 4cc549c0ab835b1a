package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/internal/pause"
)

// runGateway makes the measurements that the flags ask for and writes the table.
func runGateway(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	o, err := parseGateway(args, progress)
	if err != nil {
		return err
	}
	g := &gatewayRun{gatewayOptions: o}
	if g.lab, err = openServer(ctx, o.store, point{Topology: processesTopology}, spec{Arm: product, Payload: "flat", InFlight: 1}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.lab.close()) }()
	if err := g.buildGateway(ctx, g.lab.dir); err != nil {
		return err
	}
	if err := g.announce(ctx); err != nil {
		return err
	}
	if _, err := g.lab.start(ctx, &g.frontends, g.lab.base, "frontends", nil); err != nil {
		return err
	}
	r := gatewayReport{Machine: readMachine(ctx, os.TempDir()), Command: o.command, Repeats: o.repeats, LoadAtStart: load()}
	for repeat := range o.repeats {
		for _, m := range o.gatewayMeasurements() {
			arms := o.arms()
			for i := range arms {
				// Each repeat begins with the other arm.
				arm := arms[(i+repeat)%len(arms)]
				fmt.Fprintf(progress, "\rrepeat %d of %d: %s, %-20s", repeat+1, o.repeats, m.name, arm)
				if err := g.measure(ctx, arm, m); err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, arm, err)
				}
			}
		}
	}
	fmt.Fprintln(progress)
	r.LoadAtEnd, r.Rows = load(), g.rows.summarised()
	return o.write(r, out)
}

// announce has a worker announce the workflow, as the gateway needs for AG-UI.
func (g *gatewayRun) announce(ctx context.Context) error {
	if _, err := g.lab.start(ctx, &g.lab.worker, g.lab.base, "worker", nil); err != nil {
		return err
	}
	if _, err := g.lab.worker.do(ctx, request{Do: "run"}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	for {
		announced, err := g.lab.js.Stream(ctx, g.lab.ids.WorkflowsStream())
		if err != nil {
			return fmt.Errorf("find the list of workflows: %w", err)
		}
		if announced.CachedInfo().State.Msgs > 0 {
			return nil
		}
		if err := pause.For(ctx, pollEvery); err != nil {
			return fmt.Errorf("the worker has announced no workflow: %w", err)
		}
	}
}

// measure makes one measurement with fresh processes.
func (g *gatewayRun) measure(ctx context.Context, arm string, m gatewayMeasurement) (err error) {
	s, err := g.serve(ctx, arm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	defer func() {
		_, left := g.frontends.do(ctx, request{Do: "leave"})
		err = errors.Join(err, left)
	}()
	return m.run(g, ctx, arm, s)
}

// ask sends a request to the clients.
func (g *gatewayRun) ask(ctx context.Context, do string, r frontendRequest) (*frontendReply, error) {
	answer, err := g.frontends.do(ctx, request{Do: do, Frontends: &r})
	if err != nil {
		return nil, err
	}
	return answer.Frontends, nil
}

// chat returns the beginning of the names of chats that were not used before, after it has stored what they begin with.
func (g *gatewayRun) chat(ctx context.Context, kind string, tenants, chats, old int) (string, error) {
	g.chats++
	name := kind + "-" + strconv.Itoa(g.chats)
	_, err := g.ask(ctx, "history", frontendRequest{Chat: name, Tenants: tenants, Chats: chats, Events: old})
	return name, err
}

// Events that some client lacks, and the most events of a measurement: one client takes more of them than the server stores.
const (
	window     = 64
	mostEvents = 20_000
	mostRate   = 2_000
)

// deliveriesTo measures throughput and latency of deliveries to clients of one chat.
func (g *gatewayRun) deliveriesTo(ctx context.Context, arm string, s *served, endpoint string, clients int) error {
	chat, err := g.chat(ctx, "live", 1, 1, 0)
	if err != nil {
		return err
	}
	r := frontendRequest{Address: s.address, Endpoint: endpoint, Chat: chat, Chats: 1, Clients: clients, Window: window}
	if _, err := g.ask(ctx, "open", r); err != nil {
		return err
	}
	count := min(g.deliveries/clients, mostEvents)
	r.Events = max(count/10, 1)
	if _, err := g.ask(ctx, "deliver", r); err != nil { // warms up
		return err
	}
	if err := g.profile(ctx, s, "profile"); err != nil {
		return err
	}
	before, err := s.read(ctx)
	if err != nil {
		return err
	}
	r.Events = count
	full, err := g.ask(ctx, "deliver", r)
	if err != nil {
		return err
	}
	after, err := s.read(ctx)
	if err != nil {
		return err
	}
	if err := g.profile(ctx, s, "profiled"); err != nil {
		return err
	}
	r.Rate = min(max(g.rate/clients, 1), mostRate)
	r.Events = max(int(g.paced.Seconds()*float64(r.Rate)), 2)
	paced, err := g.ask(ctx, "deliver", r)
	if err != nil {
		return err
	}
	deliveries := float64(count * clients)
	on := strconv.Itoa(clients) + " " + map[string]string{endpointSocket: "WebSockets", endpointAGUI: "AG-UI streams"}[endpoint]
	g.rows.add(arm, on, figureRate, deliveries/full.Took.Seconds())
	g.rows.add(arm, on, figureCPU, 1e6*(after[metricCPU]-before[metricCPU])/deliveries)
	g.rows.add(arm, on, figureAllocs, (after[metricAllocs]-before[metricAllocs])/deliveries)
	on += fmt.Sprintf(", %d/s", r.Rate*clients)
	g.rows.add(arm, on, figureP50, paced.Latency[0])
	g.rows.add(arm, on, figureP99, paced.Latency[1])
	return nil
}

// profile starts or ends the profiles of the gateway, if there are any.
func (g *gatewayRun) profile(ctx context.Context, s *served, do string) error {
	if !g.profiling() {
		return nil
	}
	_, err := s.role.do(ctx, request{Do: do})
	return err
}

// opening measures how long it takes to connect to a chat with a history.
func (g *gatewayRun) opening(ctx context.Context, arm string, s *served) error {
	chat, err := g.chat(ctx, historyChat, 1, g.opened, g.old)
	if err != nil {
		return err
	}
	took, err := g.ask(ctx, "first", frontendRequest{Address: s.address, Endpoint: endpointSocket, Chat: chat, Chats: g.opened, Clients: g.opened})
	if err != nil {
		return err
	}
	on := fmt.Sprintf("history of %d events", g.old)
	g.rows.add(arm, on, figureFirst50, took.Latency[0])
	g.rows.add(arm, on, figureFirst99, took.Latency[1])
	g.rows.add(arm, on, figureWhole99, took.Whole[1])
	return nil
}

// tenants share out the searches of the server that many connects cost.
const tenants = 100

// memoryOf measures what open WebSockets cost that get nothing.
func (g *gatewayRun) memoryOf(ctx context.Context, arm string, s *served, clients int) error {
	chat, err := g.chat(ctx, "idle", tenants, clients, 0)
	if err != nil {
		return err
	}
	before, err := s.read(ctx)
	if err != nil {
		return err
	}
	if _, err := g.ask(ctx, "open", frontendRequest{Address: s.address, Endpoint: endpointSocket, Chat: chat, Tenants: tenants, Chats: clients, Clients: clients}); err != nil {
		return err
	}
	if err := pause.For(ctx, g.rest); err != nil {
		return err
	}
	after, err := s.read(ctx)
	if err != nil {
		return err
	}
	if err := g.profile(ctx, s, "profiled"); err != nil {
		return err
	}
	on := strconv.Itoa(clients) + " idle WebSockets"
	each := func(metric string) float64 { return (after[metric] - before[metric]) / float64(clients) / 1024 }
	g.rows.add(arm, on, figureRSS, each(metricRSS))
	g.rows.add(arm, on, figureHeap, each(metricHeap))
	g.rows.add(arm, on, figureStacks, each(metricStacks))
	g.rows.add(arm, on, figureTotal, after[metricRSS]/(1<<20))
	return nil
}

func (o *gatewayOptions) wants(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}
