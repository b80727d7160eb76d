import aedes from './index.cjs';

export const { Aedes, AuthErrorCode, createBroker, Server } = aedes;
export default aedes;
