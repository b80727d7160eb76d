import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FieldTable } from '../../lib/base/fields.ts';
import { hideSecrets, keepSecrets } from '../../lib/streams/rule/secrets.ts';
import type { Properties } from '../../lib/streams/types.ts';

const TABLE: FieldTable = {
  key: { type: 'string', about: 'A key.', isSecret: true },
  tokenCount: { type: 'number', about: 'No secret, whatever its name is.' }
};
const propertiesOf = (type: string) => (type === 'known' ? TABLE : undefined);

/** Properties, and the form in which they are shown. */
const SHOWN: readonly (readonly [given: Properties, shown: Properties])[] = [
  [
    { KEY: 'k', tokenCount: 3 },
    { KEY: '******', tokenCount: 3 }
  ],
  [{ headers: { Authorization: 'a', accept: 'b' } }, { headers: { Authorization: '******', accept: 'b' } }],
  [{ a: { b: { c: { password: 'p', d: 1 } } } }, { a: { b: { c: { password: '******', d: 1 } } } }],
  [
    { servers: [{ token: 't', port: 1 }, [{ secret: 's' }]] },
    { servers: [{ token: '******', port: 1 }, [{ secret: '******' }]] }
  ],
  [{ passwords: ['a', 'b'] }, { passwords: '******' }],
  [{ server: 'tcp://u:p@host:1883' }, { server: 'tcp://******@host:1883' }],
  [{ server: 'tcp://token@host/a@b?c=d@e' }, { server: 'tcp://******@host/a@b?c=******' }],
  [
    { url: 'http://host/a?token=t&b=&token=u;c#d=e' },
    { url: 'http://host/a?token=******&b=&token=******;******#d=******' }
  ],
  [{ dataTemplate: '{"a":"https://h/?k=v","b":"x?y=z"}' }, { dataTemplate: '{"a":"https://h/?k=******","b":"x?y=z"}' }],
  [{ url: 'http://u:p@w@host' }, { url: 'http://******@host' }],
  [
    { brokers: 'kafka://a:b@h1,kafka://h2,kafka://c:d@h3' },
    { brokers: 'kafka://******@h1,kafka://h2,kafka://******@h3' }
  ],
  [{ urls: ['http://u:p@a/', 'http://b/'] }, { urls: ['http://******@a/', 'http://b/'] }],
  [
    { to: 'someone@host', text: 'see http://host/a@b' },
    { to: 'someone@host', text: 'see http://host/a@b' }
  ]
];

describe('The secrets of actions', () => {
  it('hides secrets at every depth, in arrays, and in the user information and queries of URLs', () => {
    for (const [given, shown] of SHOWN)
      assert.deepEqual(hideSecrets([{ known: given }], propertiesOf), [{ known: shown }]);
  });

  it('keeps the current secrets where a change contains the placeholder', () => {
    for (const [given, shown] of SHOWN)
      assert.deepEqual(keepSecrets([{ known: shown }], [{ known: given }]), [{ known: given }]);
  });

  it('matches secrets of a query by name, even if other values are removed', () => {
    const present = [{ known: { url: 'http://u:p@host/a?x=1&key=k&key=l' } }];
    const change = [{ known: { url: 'https://******@host/b?key=******&key=new&y=2' } }];
    assert.deepEqual(keepSecrets(change, present), [{ known: { url: 'https://u:p@host/b?key=k&key=new&y=2' } }]);
  });

  it('keeps secrets when other values change', () => {
    const present = [{ known: { server: 'tcp://u:p@host', list: [{ token: 't' }, { token: 'u' }] } }];
    const change = [{ known: { server: 'ssl://******@host:8883', list: [{ token: '******', a: 1 }, { token: 'v' }] } }];
    assert.deepEqual(keepSecrets(change, present), [
      { known: { server: 'ssl://u:p@host:8883', list: [{ token: 't', a: 1 }, { token: 'v' }] } }
    ]);
  });

  it('matches actions by their position among those that are not functions, which are not shown', () => {
    const call = () => undefined;
    const kept = keepSecrets([call, { known: { key: '******' } }], [{ known: { key: 'k' } }]);
    assert.deepEqual(kept, [call, { known: { key: 'k' } }]);
  });

  it('refuses a placeholder without a current secret, and names its position', () => {
    for (const [given, message] of [
      [{ key: '******' }, 'known sink: property key: ****** stands for the current value, but there is none'],
      [
        { a: { b: '******' } },
        'known sink: property a, field b: ****** stands for the current value, but there is none'
      ],
      [
        { a: [{ b: '******' }] },
        'known sink: property a, field 0, field b: ****** stands for the current value, but there is none'
      ],
      [
        { url: 'http://host?a=******' },
        'known sink: property url: ****** stands for the current value, but there is none'
      ],
      [
        { url: 'http://******@host' },
        'known sink: property url: ****** stands for the current value, but there is none'
      ]
    ] as const)
      assert.throws(() => keepSecrets([{ known: given }], [{ known: { url: 'http://host' } }]), {
        code: 'PROPERTY_INVALID',
        message
      });
  });

  it('searches only as many levels for secrets as properties may have', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    assert.throws(() => keepSecrets([{ known: cyclic }], []), {
      code: 'PROPERTY_INVALID',
      message: 'known sink: property self has more than 64 levels of objects and arrays'
    });
  });

  it('leaves instances of classes unchanged', () => {
    const at = new Date(0);
    assert.deepEqual(hideSecrets([{ known: { at } }], propertiesOf), [{ known: { at } }]);
    assert.equal((keepSecrets([{ known: { at } }], []) as { known: { at: Date } }[])[0].known.at, at);
  });
});
