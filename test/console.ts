// Tests of the console in a real browser: `npm run console:test`. They are skipped without chromium, unless REQUIRE_BROWSER is 1.
import './console/pages.ts';
