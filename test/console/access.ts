// Applications and users of the console in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PASSWORD } from '../support/dashboard.ts';
import { describeConsole, seriousFindings } from './setup.ts';

describeConsole('Applications and users in the console', (served) => {
  it('shows a new secret of an application once, disables it, lets it expire, and removes it', async () => {
    const tab = await served.open('access?tab=apps');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const shown = page.locator('main [role=status] code');
    await page.getByRole('button', { name: 'Add an application' }).click();
    await dialog.getByLabel(/^Id/).fill('a/b');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('The secret of a/b is shown only now').waitFor();
    const { applications } = served.broker;
    const first = (await shown.textContent()) ?? '';
    assert.ok(await applications.verify('a/b', first));
    const row = page.getByRole('row', { name: /^a\/b/ });
    await row.getByRole('button', { name: 'New secret' }).click();
    await dialog.getByRole('button', { name: 'New secret' }).click();
    await page.getByText('The application was changed').waitFor();
    await shown.filter({ hasNotText: first }).waitFor();
    const second = (await shown.textContent()) ?? '';
    assert.equal(await applications.verify('a/b', first), undefined);
    assert.ok(await applications.verify('a/b', second));
    await page.reload();
    await row.waitFor();
    assert.equal(await page.getByText(second).count(), 0);
    await row.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('Expires').fill('2001-02-03T04:05:06');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('expired').waitFor();
    await row.getByText('2001-02-03 04:05:06').waitFor();
    await row.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('State').selectOption('disabled');
    await dialog.getByLabel('Expires').fill('');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('disabled').waitFor();
    assert.deepEqual([applications.get('a/b')?.isEnabled, applications.get('a/b')?.expiresAt], [false, undefined]);
    await row.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('There are no applications').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('adds MQTT users, gives them a new password, and removes them', async () => {
    const { broker } = served;
    const tab = await served.open('access?tab=mqtt');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    for (const [kind, label, records] of [
      ['User names', /^User name/, broker.access.usernames],
      ['User names with rights', /^User name/, broker.access.logins]
    ] as const) {
      await page.getByRole('link', { name: kind, exact: true }).click();
      await page.getByText('There are no records of this kind').waitFor();
      await page.getByRole('button', { name: 'Add a record' }).click();
      await dialog.getByLabel(label).fill('a/b ..');
      await dialog.getByLabel(/^Password/).fill('first password');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      const row = page.getByRole('row', { name: /^a\/b \.\./ });
      await row.waitFor();
      const first = records.get('a/b ..')?.passwordHash;
      await row.getByRole('button', { name: 'New password' }).click();
      await dialog.getByLabel(/^Password/).fill('second password');
      if (kind === 'User names with rights') await dialog.getByLabel('Superuser').check();
      await dialog.getByRole('button', { name: 'Set', exact: true }).click();
      await page.getByText('The record was changed').first().waitFor();
      await dialog.waitFor({ state: 'detached' }); // the notice may be that of the other kind
      assert.notEqual(records.get('a/b ..')?.passwordHash, first);
      assert.equal(records.get('a/b ..')?.isSuperuser, kind === 'User names with rights');
      await row.getByRole('button', { name: 'Remove' }).click();
      await dialog.getByRole('button', { name: 'Remove' }).click();
      await page.getByText('There are no records of this kind').waitFor();
      assert.equal(records.get('a/b ..'), undefined);
    }
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('names the field that a new access rule needs, and adds no rule for everyone with a name', async () => {
    const tab = await served.open('access?tab=rules');
    const { page } = tab;
    await page.getByRole('button', { name: 'Add a rule' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Topic filter/).fill('a/#');
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await add.click();
    await dialog.getByText('Enter the client id in "Name"').waitFor();
    await dialog.getByLabel('For').selectOption('everyone');
    await dialog.getByLabel('Name').fill('meter-1');
    await add.click();
    await dialog.getByText('A rule for everyone has no name').waitFor();
    await dialog.getByLabel('Name').fill('');
    await add.click();
    await page.getByRole('row', { name: /^everyone allow/ }).waitFor();
    assert.equal(await page.getByRole('row', { name: /meter-1/ }).count(), 0);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('keeps the last administrator, and says why', async () => {
    const tab = await served.open('access?tab=users');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const own = page.getByRole('row', { name: /^ann you administrator/ });
    await own.waitFor();
    for (const name of ['Role', 'Remove']) assert.equal(await own.getByRole('button', { name }).isDisabled(), true);
    assert.match((await own.getByRole('button', { name: 'Role' }).getAttribute('title')) ?? '', /last administrator/);
    assert.match((await own.getByRole('button', { name: 'Remove' }).getAttribute('title')) ?? '', /yourself/);
    await page.getByRole('button', { name: 'Add a user' }).click();
    await dialog.getByLabel(/^User/).fill('admin');
    await dialog.getByLabel(/^Password/).fill('a long password');
    await dialog.getByLabel('Role').selectOption('administrator');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    const other = page.getByRole('row', { name: /^admin administrator/ });
    await other.waitFor();
    assert.equal(await own.getByRole('button', { name: 'Role' }).isDisabled(), false);
    assert.match(
      (await other.getByRole('button', { name: 'Remove' }).getAttribute('title')) ?? '',
      /cannot be removed/
    );
    await own.getByRole('button', { name: 'New password' }).click();
    await dialog.getByText('Your session ends').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('tells a viewer that applications and users are for administrators', async () => {
    const tab = await served.open('access?tab=apps', 'bob');
    for (const [part, name] of [
      ['apps', 'Add an application'],
      ['users', 'Add a user']
    ]) {
      await tab.page.goto(`${served.base}/access?tab=${part}`);
      const button = tab.page.getByRole('button', { name });
      await button.waitFor();
      assert.equal(await button.isDisabled(), true);
      assert.match(
        `${await button.getAttribute('title')}`,
        /^Only administrators .* to give your user the role administrator\.$/
      );
    }
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('lets a viewer change the own password, after the present one, and ends the session', async () => {
    const tab = await served.open('', 'bob', {});
    const { page } = tab;
    const dialog = page.getByRole('dialog', { name: 'Change your password' });
    const change = async (before: string, after: string, again: string) => {
      await dialog.getByLabel(/^Present password/).fill(before);
      await dialog.getByLabel(/^New password(?! again)/).fill(after);
      await dialog.getByLabel(/^New password again/).fill(again);
      await dialog.getByRole('button', { name: 'Change' }).click();
    };
    await page.getByRole('button', { name: 'Your password' }).click();
    await change(PASSWORD, 'another long password', 'a third long password');
    await dialog.getByText('The two new passwords differ').waitFor();
    await change('wrong', 'another long password', 'another long password');
    await dialog.getByRole('alert').filter({ hasNotText: 'differ' }).waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    await change(PASSWORD, 'another long password', 'another long password');
    await page.getByRole('dialog', { name: 'The session has ended' }).waitFor();
    assert.equal(await served.broker.users.verify('bob', PASSWORD), undefined);
    assert.ok(await served.broker.users.verify('bob', 'another long password'));
    await served.broker.users.setPassword('bob', PASSWORD);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
