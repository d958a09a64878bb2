// Looks up what is in stock by net/http, through a gateway.
//
//	paceline gateway shop -- go run examples/gateway.go 9780000000002 9780000000019
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	for _, isbn := range os.Args[1:] {
		url := os.Getenv("PACELINE_GATEWAY") + "/shop/v1/stock/" + isbn
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		request.Header.Set("Paceline-Deadline", "10m") // how long it may wait for its turn
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.Header.Get("Paceline-Reason") != "" {
			// Not the shop's answer: nothing was sent. It says which limit, and until when.
			fmt.Fprintln(os.Stderr, string(body))
			os.Exit(75)
		}
		fmt.Println(isbn, answer.StatusCode, string(body))
	}
}
