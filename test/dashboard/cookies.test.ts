import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cookieName, cookieText, cookieValues } from '../../adapters/dashboard/cookies.ts';

describe('Cookies of the console', () => {
  it('names a cookie by the mount and the node, with another prefix over TLS', () => {
    const names = [cookieName('', 'a@h'), cookieName('/console', 'a@h'), cookieName('', 'b@h'), cookieName('', 'a@h')];
    assert.equal(new Set(names).size, 3);
    for (const name of names) assert.match(name, /^embermq-[0-9a-f]{16}$/);
    const [name] = names;
    assert.equal(cookieText(name, 'v', { mount: '', isSecure: false }), `${name}=v; Path=/; HttpOnly; SameSite=Strict`);
    assert.equal(
      cookieText(name, undefined, { mount: '/c', isSecure: true }),
      `__Secure-${name}=; Path=/c; HttpOnly; SameSite=Strict; Secure; Max-Age=0`
    );
  });

  it('reads only cookies with Secure over TLS, or if there is one: other pages of the host can set one without', () => {
    assert.deepEqual(cookieValues('n=a; __Secure-n=b', 'n', false), ['b']);
    assert.deepEqual(cookieValues('n=a; __Secure-n=b', 'n', true), ['b']);
    assert.deepEqual(cookieValues('n=a', 'n', true), []);
    assert.deepEqual(cookieValues(`${'n=a; '.repeat(20)}__Secure-n=b`, 'n', false), ['b']);
  });

  it('finds cookies among others of the same name, of which it looks at eight', () => {
    const many = Array.from({ length: 20 }, (_, at) => `n=${at}`).join(';');
    const cases: [header: string | undefined, values: string[]][] = [
      [undefined, []],
      ['', []],
      ['n', []],
      ['n=a', ['a']],
      [' n = a ;m=b', ['a']],
      ['nn=x; n=a=b; n=c', ['a=b', 'c']],
      [many, ['0', '1', '2', '3', '4', '5', '6', '7']]
    ];
    for (const [header, values] of cases) assert.deepEqual(cookieValues(header, 'n', false), values, header);
  });

  it('takes no attributes from the path of a hostile address', () => {
    const pathIn = (mount: string) =>
      /; Path=([^;]*); HttpOnly/.exec(cookieText('n', 'v', { mount, isSecure: false }))?.[1];
    assert.equal(pathIn('/tenants/a;Domain=evil.example/console'), '/tenants');
    assert.equal(pathIn('/;a/console'), '/');
    assert.equal(pathIn('/a b/console'), '/');
    assert.equal(pathIn('/a%3Bb/console'), '/a%3Bb/console');
  });
});
