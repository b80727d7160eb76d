// Tests of the console in a real browser: `npm run console:test`, or those of some areas: `npm run console:test -- rules`. They are skipped without
// chromium, unless REQUIRE_BROWSER is 1. Each file of `test/console` has the tests of one area.
import { after } from 'node:test';
import { closeBrowser } from './console/browser.ts';
// Areas that take long are first, so that none of them runs alone at the end.
import './console/looks.ts';
import './console/observe.ts';
import './console/connection.ts';
import './console/hostile.ts';
import './console/viewer.ts';
import './console/pages.ts';
import './console/streams.ts';
import './console/connectors.ts';
import './console/actions.ts';
import './console/rules.ts';
import './console/floods.ts';
import './console/speed.ts';
import './console/websocket.ts';
import './console/large.ts';
import './console/traces.ts';
import './console/access.ts';
import './console/settings.ts';
import './console/alarms.ts';
import './console/hosted.ts';
import { declareAreas } from './console/setup.ts';

declareAreas();
after(closeBrowser);
