import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { turns } from '../fuzz/wire.ts';
import { bed, client, isServed } from './support.ts';

describe('a connection that the broker has decided to close', () => {
  it('does not count for maxConnections: its client may come back at once', async () => {
    await using it = await bed({ maxConnections: 1 });
    const first = await client(it.broker, { autoDestroy: false, emitClose: false });
    first.say({ cmd: 'disconnect', reasonCode: 0 });
    const second = await client(it.broker);
    assert.ok(await isServed(second));
    const third = await client(it.broker);
    assert.ok(third.wire.isCut, 'one that is open counts');
  });

  it('is cut off when its client goes on sending', async () => {
    await using it = await bed();
    const flooder = await client(it.broker, { autoDestroy: false, emitClose: false });
    flooder.say({ cmd: 'disconnect', reasonCode: 0 });
    await turns(2);
    assert.ok(flooder.wire.isEnded && !flooder.wire.isCut);
    for (let sent = 0; sent < 10; sent++) flooder.say(Buffer.alloc(65_536));
    await turns(2);
    assert.ok(flooder.wire.isCut);
  });
});
