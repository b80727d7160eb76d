import './styles/index.css';
import { render } from 'preact';
import { startLive } from './app/live.ts';
import { followLinks } from './app/place.ts';
import { loadSession } from './app/session.ts';
import { applyTheme } from './app/theme.ts';
import { Shell } from './parts/shell.tsx';

applyTheme();
followLinks();
startLive();
void loadSession();
render(<Shell />, document.getElementById('page') as HTMLElement);
