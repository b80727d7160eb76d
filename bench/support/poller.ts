/** Asks a management interface for clients, statistics and counters once a second, until its parent ends: `node poller.js JSON`. */
const { port, id, secret } = JSON.parse(process.argv[2]) as { port: number; id: string; secret: string };
const headers = { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
process.once('disconnect', () => process.exit());
const poll = async () => {
  for (const path of ['clients?_limit=100', 'stats', 'metrics', 'nodes']) {
    const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, { headers });
    if (response.status !== 200) throw new Error(`${path}: status ${response.status}`);
    await response.arrayBuffer();
  }
};
setInterval(poll, 1000);
await poll();
