import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { VirtualClock } from '../../lib/testing/index.ts';
import { functionModule, pluginsFixture } from '../support/plugins.ts';
import { zip } from '../support/zip.ts';

const MODULE = { name: 'Echo@v1.js', content: functionModule('Echo', 1) };

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('The files of a plugin', { skip: process.platform === 'win32' }, () => {
  it('restricts the files to the user of the process, whatever the umask', async () => {
    const { plugins, archive, folder } = await pluginsFixture();
    const file = archive(
      'e.zip',
      MODULE,
      { name: 'lib/words.txt', content: 'hi' },
      { name: 'etc/key.txt', content: 's3cret' }
    );
    const mask = process.umask(0);
    try {
      await plugins.create('functions', { name: 'echo', file });
    } finally {
      process.umask(mask);
    }
    const streams = join(folder, 'streams');
    const open = readdirSync(streams, { recursive: true }).filter((name) => {
      const { mode } = statSync(join(streams, String(name)));
      return (mode & 0o077) !== 0;
    });
    assert.deepEqual(open, []);
    assert.equal(readFileSync(join(streams, 'etc/functions/echo/key.txt'), 'utf8'), 's3cret');
  });
});

describe('The script of an archive', () => {
  it('runs the script with its parameters next to its files, and keeps its output', async () => {
    const { plugins, archive, folder } = await pluginsFixture();
    const script = 'cat words.txt; echo "$1-$2" >&2; echo done > made.txt';
    const file = archive(
      'e.zip',
      MODULE,
      { name: 'install.sh', content: script },
      { name: 'words.txt', content: 'hi ' }
    );
    await plugins.create('functions', { name: 'echo', file, shellParas: ['a b', '$x'] });
    const installed = join(folder, 'streams/plugins/functions');
    const [own] = readdirSync(installed);
    assert.equal(readFileSync(join(installed, own, 'install.log'), 'utf8'), 'hi a b-$x\n');
    assert.equal(readFileSync(join(installed, own, 'made.txt'), 'utf8'), 'done\n');
  });

  it('undoes the installation if the script fails or takes too long, and ends the processes it has started', async () => {
    const clock = new VirtualClock(); // no script takes too long, however slow the machine is
    const { plugins, archive, folder } = await pluginsFixture({ installTimeout: 300 }, clock);
    const run = async (content: string) => {
      const file = archive('e.zip', MODULE, { name: 'install.sh', content }, { name: 'etc/x' });
      const error = await plugins.create('functions', { name: 'echo', file }).catch((reason: Error) => reason);
      assert.equal((error as { code?: string }).code, 'PLUGIN_INSTALL_FAILED');
      assert.deepEqual(await plugins.list('functions'), []);
      assert.equal(existsSync(join(folder, 'streams/plugins/incoming')), false);
      assert.equal(existsSync(join(folder, 'streams/etc')), false);
      return (error as Error).message;
    };
    const until = async (isTrue: () => boolean) => {
      for (let i = 0; i < 10_000 && !isTrue(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    assert.equal(await run('exit 3'), 'fail to install plugin: exit status 3; it has written nothing');
    assert.match(await run('echo no network; exit 1'), /^fail to install plugin: exit status 1; .*"no network"$/);
    assert.match(await run('seq 100000; exit 1'), /99999\\n100000"$/);
    const pid = join(folder, 'pid');
    const late = run(`echo waiting; sleep 1000 & echo $! > "${pid}.part"; mv "${pid}.part" "${pid}"; wait`);
    await until(() => existsSync(pid));
    await clock.advance(300);
    assert.equal(
      await late,
      'fail to install plugin: install.sh took longer than 300 ms; its output ends with "waiting"'
    );
    const child = Number(readFileSync(pid, 'utf8'));
    const isAlive = () => existsSync(`/proc/${child}`) && !/\) Z /.test(readFileSync(`/proc/${child}/stat`, 'utf8'));
    await until(() => !isAlive()); // a killed process ends when the system has a core for it
    assert.equal(isAlive(), false);
  });

  it('refuses the script if the option installScripts is false', async () => {
    const { plugins, archive } = await pluginsFixture({ installScripts: false });
    const file = archive('e.zip', MODULE, { name: 'install.sh', content: 'exit 0' });
    await assert.rejects(plugins.create('functions', { name: 'echo', file }), {
      code: 'PLUGIN_SCRIPT_REFUSED',
      message: /^fail to install plugin: the archive has install\.sh, and the option installScripts is false/
    });
    await plugins.create('functions', { name: 'echo', file: archive('f.zip', MODULE) });
  });

  it('accepts only strings as parameters', async () => {
    const { plugins, archive } = await pluginsFixture();
    const file = archive('e.zip', MODULE);
    for (const shellParas of [[1], 'a', Array(101).fill('x'), ['a\0b']] as never[])
      await assert.rejects(plugins.create('functions', { name: 'echo', file, shellParas }), {
        code: 'PLUGIN_INPUT_INVALID'
      });
  });
});

describe('The download of an archive', () => {
  it('follows redirects, and sends credentials of the URL only to its origin', async () => {
    const seen: string[] = [];
    const other = await serve((request, response) => {
      seen.push(`other ${request.url} ${request.headers.authorization}`);
      response.end(zip(MODULE));
    });
    const origin = await serve((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization}`);
      const to = request.url === '/a.zip' ? '/b' : `${other}/c`;
      response.writeHead(302, { location: to }).end();
    });
    const { plugins, streams } = await pluginsFixture();
    await plugins.create('functions', { name: 'echo', file: `${origin.replace('//', '//u:p@')}/a.zip?v=1` });
    assert.equal(streams.call('echo'), 1);
    assert.deepEqual(seen, ['/a.zip?v=1 Basic dTpw', 'other /c undefined']);
  });

  it('refuses with the same words for any answer of the server, and logs the cause', async () => {
    const origin = await serve((request, response) => {
      const path = request.url?.replace(/\?.*/, '');
      if (path === '/loop.zip') response.writeHead(301, { location: '/loop.zip' }).end();
      else if (path === '/file.zip') response.writeHead(301, { location: 'file:///etc/passwd' }).end();
      else if (path === '/large.zip') response.end(Buffer.alloc(5000));
      else if (path === '/text.zip') response.end('a secret of the server');
      else if (path !== '/slow.zip') response.writeHead(404).end();
    });
    const logged: string[] = [];
    const onLog = (name: string, text: string) => logged.push(`${name}: ${text}`);
    const { plugins, archive } = await pluginsFixture({ maxArchiveSize: 4000, onLog });
    const { plugins: hasty } = await pluginsFixture({ downloadTimeout: 200, onLog });
    const refusal = async (file: string, asked = plugins) => {
      const error = await asked.create('functions', { name: 'echo', file }).catch((reason: Error) => reason);
      const { code, message } = error as Error & { code?: string };
      const [cause] = logged.splice(0);
      return { answer: `${code} ${message}`, cause: cause.replace('echo: the archive cannot be read: ', '') };
    };
    const causes: [file: string, cause: RegExp, asked?: typeof plugins][] = [
      [`${origin}/none.zip`, /the server answered with status 404$/],
      [`${origin}/loop.zip`, /there are more than 5 redirects$/],
      [`${origin}/file.zip`, /a redirect leads to the scheme file:$/],
      [`${origin}/large.zip`, /is larger than 4000 bytes/],
      [`${origin}/text.zip`, /it is not a ZIP archive$/],
      [`${origin}/slow.zip`, /it took longer than 200 ms$/, hasty],
      ['http://127.0.0.1:1/x.zip', /ECONNREFUSED|bad port/]
    ];
    for (const [file, cause, asked] of causes) {
      const { answer, cause: found } = await refusal(file, asked);
      const expected = `fail to download file ${file}: no archive was received; the log of the broker has the reason`;
      assert.equal(answer, `PLUGIN_DOWNLOAD_FAILED ${expected}`);
      assert.match(found, cause);
    }
    const large = archive('large.zip', { name: 'x', content: Buffer.alloc(5000), method: 0 });
    const { answer, cause } = await refusal(large);
    assert.equal(answer, `PLUGIN_FILE_INVALID invalid uri ${large}`);
    assert.match(cause, /it is larger than 4000 bytes, the option maxArchiveSize$/);
    const secrets = await refusal(`${origin.replace('//', '//u:p@')}/none.zip?token=t0p&v`);
    assert.ok(secrets.answer.includes(`${origin.replace('//', '//***@')}/none.zip?token=***&***: `), secrets.answer);
    assert.doesNotMatch(secrets.cause, /t0p|u:p/);
  });

  it('ends when the plugins are closed', async () => {
    let seen = () => {};
    const arrived = new Promise<void>((resolve) => {
      seen = resolve;
    });
    const origin = await serve(() => seen());
    const { plugins } = await pluginsFixture();
    const created = plugins.create('functions', { name: 'echo', file: `${origin}/x.zip` });
    await arrived;
    plugins.close();
    await assert.rejects(created, /closed/);
    await assert.rejects(plugins.delete('functions', 'echo'), { code: 'PLUGINS_CLOSED' });
  });
});

describe('Prebuilt plugins', () => {
  const arch = { x64: 'amd64', ia32: '386' }[process.arch as string] ?? process.arch;

  it('lists those for this machine of all hosts, the first host first', async () => {
    const paths: (string | undefined)[] = [];
    const page =
      (...names: string[]): RequestListener =>
      (request, response) => {
        paths.push(request.url);
        response.end(names.map((name) => `<li><a class=x href="${name}">${name}</a>`).join('\n'));
      };
    const one = await serve(page('../', `file_${arch}.zip`, 'file_sparc.zip', `my_sink_${arch}.zip`));
    const two = await serve(page(`file_${arch}.zip`, `/deep/zmq_${arch}.zip`));
    const { plugins } = await pluginsFixture({ pluginHosts: `${one}/, ${two}`, pluginOs: 'alpine' });
    const path = '/kuiper-plugins/1.2.0/alpine/sinks';
    assert.deepEqual(await plugins.prebuild('sinks'), {
      file: `${one}${path}/file_${arch}.zip`,
      my_sink: `${one}${path}/my_sink_${arch}.zip`,
      zmq: `${two}${path}/zmq_${arch}.zip`
    });
    assert.deepEqual(paths, [path, path]);
  });

  it('reports the cause of a failure', async () => {
    const none = await pluginsFixture();
    await assert.rejects(none.plugins.prebuild('sinks'), {
      ...{ code: 'PLUGIN_HOSTS_MISSING', message: 'Invalid configruation for plugin host in kuiper.yaml.' }
    });
    const host = await serve((_, response) => response.writeHead(500).end());
    const { plugins } = await pluginsFixture({ pluginHosts: [host], pluginVersion: '1.1.2' });
    await assert.rejects(plugins.prebuild('functions'), {
      code: 'PLUGIN_HOST_FAILED',
      message: `Cannot fetch plugin list from ${host}/kuiper-plugins/1.1.2/debian/functions, with status error: 500`
    });
  });

  it('accepts only hosts with http or https', async () => {
    await assert.rejects(pluginsFixture({ pluginHosts: 'file:///etc' }), { code: 'OPTION_INVALID' });
    await assert.rejects(pluginsFixture({ pluginOs: '../x' }), { code: 'OPTION_INVALID' });
  });
});

describe('The list of plugins', () => {
  it('keeps the file if it cannot be read', async () => {
    const fixture = await pluginsFixture();
    await fixture.plugins.create('functions', { name: 'echo', file: fixture.archive('e.zip', MODULE) });
    for (const text of [
      '{',
      '[]',
      '{"plugins":[{"type":"sinks","name":"a","folder":"../..","library":"x"}],"scripts":[]}'
    ]) {
      writeFileSync(join(fixture.folder, 'streams/plugins/list.json'), text);
      await assert.rejects(fixture.reopen(), { code: 'PLUGINS_STATE_FAILED', message: /list\.json cannot be read/ });
    }
  });
});
