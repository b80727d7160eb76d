import { RequestError } from '../../app/requests.ts';
import { streams } from '../../app/streams.ts';
import { Action } from '../../parts/confirm.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;
const TYPES = ['functions', 'sources', 'sinks'] as const;

interface Plugin {
  readonly type: (typeof TYPES)[number];
  readonly name: string;
  readonly version: string;
  readonly functions?: readonly string[];
}

interface Script {
  readonly id: string;
  readonly description: string;
  readonly script: string;
  readonly isAgg: boolean;
}

/** The plugins, which add sources, sinks and functions, and the functions in JavaScript. */
export function Plugins() {
  const { value, error, reload } = useLoaded('plugins', async (signal) => {
    const found = await Promise.all(
      TYPES.map(async (type) => {
        const names = (await streams('GET', `/plugins/${type}`, { signal })) as readonly string[];
        return Promise.all(
          names.map(async (name): Promise<Plugin> => {
            const plugin = await streams('GET', `/plugins/${type}/${encodeURIComponent(name)}`, { signal });
            return { ...(plugin as Omit<Plugin, 'type'>), type };
          })
        );
      })
    );
    return found.flat();
  });
  if (error instanceof RequestError && error.status === 404) return <div class="empty-table">{S.noPluginService}</div>;
  return (
    <section class="stack">
      <div class="sample-head">
        <p class="aside">{S.pluginsAbout}</p>
        <AddPlugin onDone={reload} />
      </div>
      <Table
        caption={S.plugins}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ type, name }) => `${type} ${name}`}
        empty={S.noPlugins}
        columns={[
          { head: T.access.name, cell: ({ name }) => <Name of={name} /> },
          { head: S.kind, cell: ({ type }) => S.pluginKinds[type] },
          {
            head: S.version,
            cell: ({ version }) => (version === '$deleted' ? S.pluginDropped : <Name of={version} />)
          },
          {
            head: S.pluginKinds.functions,
            isWide: true,
            isMinor: true,
            cell: ({ functions = [] }) => <Name of={functions.join(', ') || '–'} max={160} />
          },
          {
            head: '',
            cell: ({ type, name, version }) =>
              version !== '$deleted' && (
                <Action
                  label={T.rules.remove}
                  title={S.removePlugin}
                  text={S.removePluginText}
                  kind="small"
                  isDangerous
                  fields={[{ name: 'now', label: S.pluginStop, type: 'flag', help: S.pluginStopHelp }]}
                  done={S.pluginRemoved}
                  run={({ now }) =>
                    streams(
                      'DELETE',
                      `/plugins/${type}/${encodeURIComponent(name)}${now === 'true' ? '?restart=1' : ''}`
                    )
                  }
                  onDone={reload}
                />
              )
          }
        ]}
      />
      {error === undefined && <Scripts />}
    </section>
  );
}

function AddPlugin({ onDone }: { readonly onDone: () => void }) {
  const listed = (text = '') =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  return (
    <Action
      label={S.addPlugin}
      text={S.addPluginText}
      submit={T.access.add}
      fields={[
        { name: 'type', label: S.kind, type: 'choice', choices: TYPES.map((type) => [type, S.pluginKinds[type]]) },
        { name: 'name', label: T.access.name, isRequired: true },
        { name: 'file', label: S.archive, help: S.archiveHelp, isRequired: true },
        { name: 'functions', label: S.pluginKinds.functions, help: S.pluginFunctionsHelp, isMinor: true },
        { name: 'shellParas', label: S.shellArguments, help: S.shellArgumentsHelp, isMinor: true }
      ]}
      done={S.pluginAdded}
      run={({ type = '', name = '', file = '', functions, shellParas }) => {
        const [exported, given] = [listed(functions), listed(shellParas)];
        const body = {
          name,
          file,
          ...(exported.length > 0 && { functions: exported }),
          ...(given.length > 0 && { shellParas: given })
        };
        return streams('POST', `/plugins/${type}`, { body });
      }}
      onDone={onDone}
    />
  );
}

function Scripts() {
  const { value, error, reload } = useLoaded('scripts', async (signal) => {
    const ids = (await streams('GET', '/udf/javascript', { signal })) as readonly string[];
    return Promise.all(
      ids.map(async (id) => (await streams('GET', `/udf/javascript/${encodeURIComponent(id)}`, { signal })) as Script)
    );
  });
  return (
    <section class="stack">
      <div class="sample-head">
        <h2>{S.scripts}</h2>
        <EditScript script={undefined} onDone={reload} />
      </div>
      <Table
        caption={S.scripts}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ id }) => id}
        empty={S.noScripts}
        columns={[
          { head: T.access.name, cell: ({ id }) => <Name of={id} /> },
          {
            head: T.rules.description,
            isMinor: true,
            cell: ({ description }) => <Name of={description || '–'} max={80} />
          },
          { head: S.script, isWide: true, cell: ({ script }) => <code>{script.slice(0, 200)}</code> },
          {
            head: '',
            cell: (script) => (
              <span class="section-actions">
                <EditScript script={script} onDone={reload} />
                <Action
                  label={T.rules.remove}
                  title={S.removeScript}
                  text={S.removeScriptText}
                  kind="small"
                  isDangerous
                  done={S.scriptRemoved}
                  run={() => streams('DELETE', `/udf/javascript/${encodeURIComponent(script.id)}`)}
                  onDone={reload}
                />
              </span>
            )
          }
        ]}
      />
    </section>
  );
}

function EditScript({ script, onDone }: { readonly script: Script | undefined; readonly onDone: () => void }) {
  return (
    <Action
      label={script === undefined ? S.addScript : T.rules.change}
      title={script === undefined ? S.addScript : S.changeScript}
      text={S.scriptText}
      submit={T.rules.save}
      kind={script === undefined ? '' : 'small'}
      fields={[
        ...(script === undefined
          ? [{ name: 'id', label: T.access.name, help: S.scriptNameHelp, isRequired: true }]
          : []),
        { name: 'script', label: S.script, type: 'lines' as const, isRequired: true },
        { name: 'description', label: T.rules.description },
        { name: 'isAgg', label: S.aggregate, help: S.aggregateHelp, type: 'flag' as const }
      ]}
      initial={{
        script: script?.script ?? S.scriptExample,
        description: script?.description ?? '',
        isAgg: script?.isAgg ? 'true' : ''
      }}
      done={S.scriptSaved}
      run={({ id = '', script: text, description, isAgg }) => {
        const body = { id: script?.id ?? id, script: text, description, isAgg: isAgg === 'true' };
        return script === undefined
          ? streams('POST', '/udf/javascript', { body })
          : streams('PUT', `/udf/javascript/${encodeURIComponent(script.id)}`, { body });
      }}
      onDone={onDone}
    />
  );
}
