// Looks up what is in stock by fetch, eight at a time, through a gateway: the quota is kept all the same.
//
//     paceline gateway shop -- node examples/gateway_fetch.mjs 9780000000002 9780000000019
const base = `${process.env.PACELINE_GATEWAY}/shop`;
const isbns = process.argv.slice(2);

async function worker() {
  for (let isbn = isbns.shift(); isbn; isbn = isbns.shift()) {
    const answer = await fetch(`${base}/v1/stock/${isbn}`, {
      headers: { "Paceline-Deadline": "4m" }, // fetch itself gives up after five minutes
    });
    if (answer.headers.get("Paceline-Reason")) {
      // Not the shop's answer: nothing was sent. It says which limit, and until when.
      const { detail, until } = await answer.json();
      throw new Error(`${detail} (${until})`);
    }
    console.log(isbn, answer.status, await answer.text());
  }
}

try {
  await Promise.all(Array.from({ length: 8 }, worker));
} catch (error) {
  console.error(error.message);
  process.exit(75);
}
