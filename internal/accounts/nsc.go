package accounts

import (
	"fmt"
	"strings"
)

// NSC returns the accounts as a script of nsc commands, for an operator of servers that resolve
// accounts from JWTs. Exports are private: an account takes one only with an activation made for it.
// The activations are files in the directory where the script runs.
func NSC(all []Account) string {
	var b strings.Builder
	b.WriteString("set -e\n")
	for _, a := range all {
		fmt.Fprintf(&b, "\n# %s\nnsc add account --name %s\n", a.About, shell(a.Name))
		if a.JetStream {
			fmt.Fprintf(&b, "nsc edit account --name %s --js-mem-storage -1 --js-disk-storage -1 --js-streams -1 --js-consumer -1\n", shell(a.Name))
		}
		for _, u := range a.Users {
			nscUser(&b, a.Name, u)
		}
		for _, e := range a.Exports {
			nscExport(&b, a.Name, e)
		}
	}
	for _, a := range all {
		for n, i := range a.Imports {
			file := shell(fmt.Sprintf("%s-%d.jwt", a.Name, n+1))
			fmt.Fprintf(&b, "nsc generate activation --account %s --target-account %s --subject %s --output-file %s\n",
				shell(i.From), shell(a.Name), shell(i.Subject), file)
			fmt.Fprintf(&b, "nsc add import --account %s --name %s --token %s\n", shell(a.Name), shell(i.Subject), file)
		}
	}
	return b.String()
}

func nscUser(b *strings.Builder, account string, u User) {
	fmt.Fprintf(b, "nsc add user --account %s --name %s \\\n  --allow-pub %s \\\n  --allow-sub %s",
		shell(account), shell(u.Name), shell(strings.Join(u.Publish, ",")), shell(strings.Join(u.Subscribe, ",")))
	if u.Responses {
		b.WriteString(" \\\n  --allow-pub-response")
	}
	b.WriteString("\n")
}

func nscExport(b *strings.Builder, account string, e Export) {
	many := ""
	if e.Many {
		many = " --response-type Stream"
	}
	fmt.Fprintf(b, "nsc add export --account %s --name %s --subject %s%s%s --private\n", shell(account), shell(e.Subject), shell(e.Subject), service(e.Service), many)
}

func service(is bool) string {
	if is {
		return " --service"
	}
	return ""
}

// shell quotes a word: names have no quotes in them, subjects have $ and *.
func shell(word string) string { return "'" + word + "'" }
