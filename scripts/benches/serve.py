"""Translation over HTTP: throughput, latency and memory of `serve` with 50 clients for 60 s; SECONDS [DIR] sets the time and a model directory with tokenised German input."""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time

from _measure import LUTHIER, run

CLIENTS = 50


async def ask(reader, writer, head, body):
    """Sends a request on an open connection; returns the status and the body of the answer."""
    writer.write(head + body)
    found = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(next(line for line in found.splitlines() if line.startswith("content-length: ")).split()[1])
    return int(found.split()[1]), await reader.readexactly(length)


def post(host, body):
    return f"POST /translate HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()


async def client(host, texts, expected, first, until, times, wrong):
    reader, writer = await asyncio.open_connection(*host.split(":"))
    at = first
    while time.perf_counter() < until:
        body = json.dumps({"text": [texts[at % len(texts)]]}).encode()
        clock = time.perf_counter()
        status, answer = await ask(reader, writer, post(host, body), body)
        times.append(time.perf_counter() - clock)
        if status != 200 or json.loads(answer)[0]["text"] != expected[at % len(texts)]:
            wrong.append((status, answer))
        at += 1
    writer.close()


async def resident(host):
    """Returns the resident memory of the server in MB."""
    reader, writer = await asyncio.open_connection(*host.split(":"))
    _, text = await ask(reader, writer, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), b"")
    writer.close()
    return float(next(line for line in text.decode().splitlines() if line.startswith("process_resident")).split()[1]) / 1e6


async def load(host, texts, expected, seconds):
    times, wrong = [], []
    begin = time.perf_counter()
    clients = (client(host, texts, expected, 37 * n, begin + seconds, times, wrong) for n in range(CLIENTS))
    await asyncio.gather(*clients)
    return times, wrong, time.perf_counter() - begin


def measure(model, texts, seconds):
    with tempfile.NamedTemporaryFile("w", suffix=".de") as file:
        file.write("\n".join(texts) + "\n")
        file.flush()
        expected = run(LUTHIER, "decode", "--model", model, "--input", file.name)[2].splitlines()
    server = subprocess.Popen([LUTHIER, "serve", "--model", model, "--listen", "127.0.0.1:0", "-q"], stdout=subprocess.PIPE, text=True)
    try:
        host = server.stdout.readline().strip().removeprefix("http://")
        asyncio.run(load(host, texts, expected, min(5, seconds)))
        before = asyncio.run(resident(host))
        times, wrong, took = asyncio.run(load(host, texts, expected, seconds))
        after = asyncio.run(resident(host))
    finally:
        server.terminate()
        assert server.wait() == 0
    cuts = statistics.quantiles(times, n=100)
    words = sum(len(t.split()) for t in texts) / len(texts)
    print(f"| {model.rsplit('/', 1)[-1]} | {len(times) / took:,.0f} | {len(times) * words / took:,.0f} | {1000 * cuts[49]:.1f} | {1000 * cuts[98]:.1f} "
          f"| {before:.1f} | {after:.1f} | {len(wrong)} |", flush=True)
    assert not wrong, wrong[0]


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(f"{CLIENTS} clients, one sentence per request, {seconds:g} s; answers are compared with those of `decode`")
    print("| model | requests/s | words/s | p50 ms | p99 ms | MB before | MB after | errors |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as at:
        run(LUTHIER, "generate", "--output", f"{at}/c", "--train", 5000, "--dev", 1, "--test", 500, "-q")
        with open(f"{at}/c/test.de") as file:
            texts = file.read().splitlines()
        if len(sys.argv) > 2:
            measure(sys.argv[2], texts, seconds)
            return
        for kind in ("phrase", "hiero"):
            run(LUTHIER, "train", "--kind", kind, "--source", f"{at}/c/train.de", "--target", f"{at}/c/train.en", "--model", f"{at}/{kind}", "-q")
            measure(f"{at}/{kind}", texts, seconds)


main()
