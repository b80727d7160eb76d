import { choice, hrefOf } from '../../app/place.ts';
import { RequestError } from '../../app/requests.ts';
import { streams } from '../../app/streams.ts';
import { messagesIn } from '../../model/streams.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs, CopyButton } from '../../parts/copy.tsx';
import type { FieldRow } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { InputError, Problem } from '../../parts/problem.tsx';
import { Result } from '../../parts/result.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;
const PATH = '/schemas/protobuf';

interface Schema {
  readonly name: string;
  readonly content: string;
}

function pathOf(name: string): string {
  return `${PATH}/${encodeURIComponent(name)}`;
}

/** The schemas of the format protobuf, and the messages and the content of the one that the address names. */
export function Schemas() {
  const chosen = choice('schema');
  const { value, error, reload } = useLoaded(
    'schemas',
    async (signal) => (await streams('GET', PATH, { signal })) as readonly string[]
  );
  return (
    <section class="stack">
      <div class="sample-head">
        <p class="aside">{S.schemasAbout}</p>
        <EditSchema schema={undefined} onDone={reload} />
      </div>
      <Table
        caption={S.schemas}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={(name) => name}
        empty={S.noSchemas}
        below={(name) => name === chosen && <Details name={name} />}
        columns={[
          {
            head: S.schema,
            isWide: true,
            cell: (name) => (
              <a
                href={hrefOf('streams', { tab: 'schemas', schema: name === chosen ? undefined : name })}
                aria-expanded={name === chosen}
              >
                <Name of={name} />
              </a>
            )
          },
          {
            head: '',
            cell: (name) => (
              <span class="section-actions">
                <Action
                  label={T.rules.remove}
                  title={S.removeSchema}
                  of={name}
                  text={S.removeSchemaText}
                  kind="small"
                  isDangerous
                  done={S.schemaRemoved}
                  run={() => streams('DELETE', pathOf(name))}
                  onDone={reload}
                >
                  <CopyAs
                    of="streams"
                    request={{ method: 'DELETE', path: pathOf(name) }}
                    ctl={['stream', 'drop-schema', '--', name]}
                  />
                </Action>
              </span>
            )
          }
        ]}
      />
    </section>
  );
}

/** The messages of a schema, as a statement names them, and its content. */
function Details({ name }: { readonly name: string }) {
  const { value, error, reload } = useLoaded(
    `schema ${name}`,
    async (signal) => (await streams('GET', pathOf(name), { signal })) as Schema
  );
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (value === undefined) return <p class="loading">{T.shell.loading}</p>;
  const options = messagesIn(value.content).map((message) => `FORMAT="protobuf", SCHEMAID="${name}.${message}"`);
  return (
    <div class="stack">
      <div class="sample-head">
        <h3>{S.messages}</h3>
        <span class="section-actions">
          <CopyAs of="streams" request={{ path: pathOf(name) }} ctl={['stream', 'schema', '--', name]} />
          <EditSchema schema={value} onDone={reload} />
        </span>
      </div>
      {options.length === 0 && <p class="aside">{S.noMessages}</p>}
      <ul>
        {options.map((text) => (
          <li key={text}>
            <code>
              <Name of={text} />
            </code>{' '}
            <CopyButton text={text} />
          </li>
        ))}
      </ul>
      <Result>{value.content}</Result>
    </div>
  );
}

const NAME: FieldRow = { name: 'name', label: T.access.name, help: S.schemaNameHelp, isRequired: true };
const CONTENT: FieldRow = { name: 'content', label: S.schemaContent, type: 'lines', rows: 16, isRequired: true };

/** A button for a new schema, or for another content of one. */
function EditSchema({ schema, onDone }: { readonly schema: Schema | undefined; readonly onDone: () => void }) {
  const isNew = schema === undefined;
  const sentBy = ({ name = '', content = '' }: Partial<Schema>) =>
    isNew
      ? ({ method: 'POST', path: PATH, body: { name, content } } as const)
      : ({ method: 'PUT', path: pathOf(schema.name), body: { content } } as const);
  return (
    <Action
      name={isNew ? 'add' : 'change'}
      isWide
      label={isNew ? S.addSchema : T.rules.change}
      title={isNew ? S.addSchema : S.changeSchema(schema.name)}
      text={isNew ? S.addSchemaText : S.changeSchemaText}
      submit={T.rules.save}
      kind={isNew ? '' : 'small'}
      fields={isNew ? [NAME, CONTENT] : [CONTENT]}
      initial={{ content: schema?.content ?? S.schemaExample }}
      done={S.schemaSaved}
      run={(texts) => {
        const { method, path, body } = sentBy(texts);
        return streams(method, path, { body }).catch(withRemedy);
      }}
      onDone={onDone}
    >
      {(texts) => {
        const name = schema?.name ?? texts.name ?? '';
        const words = [isNew ? 'add-schema' : 'replace-schema', '--', name, '-'];
        return <CopyAs of="streams" request={sentBy(texts)} ctl={['stream', ...words]} input={texts.content ?? ''} />;
      }}
    </Action>
  );
}

/** Say what an app has to do if it does not have the format. */
function withRemedy(error: unknown): never {
  if (error instanceof RequestError && /no format protobuf/.test(error.message)) throw new InputError(S.noProtobuf);
  throw error;
}
