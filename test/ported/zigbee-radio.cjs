// Loaded into zigbee2mqtt with `--require`: a double of the radio, in place of the adapters of zigbee-herdsman. The rest of zigbee2mqtt is unchanged.
// The network has a coordinator and what database.db contains. Each frame to a device is a line `RADIO` with its command.
const { createRequire } = require('node:module');
const { join } = require('node:path');

const required = createRequire(join(process.cwd(), 'package.json'));
const { Adapter } = required('zigbee-herdsman/dist/adapter');
const { ClusterId, Status } = required('zigbee-herdsman/dist/zspec/zdo');

const done = async () => undefined;
const ENDPOINT = { endpoint: 1, profileId: 260, deviceId: 5, inClusterList: [], outClusterList: [] };

class Radio extends Adapter {
  start = async () => 'resumed';
  getCoordinatorIEEE = async () => '0x00124b0000000001';
  getCoordinatorVersion = async () => ({ type: 'double', meta: { revision: 1 } });
  getNetworkParameters = async () => ({
    panID: 6754,
    extendedPanID: '0xdddddddddddddddd',
    channel: 11,
    nwkUpdateID: 0
  });
  supportsBackup = async () => false;
  stop = done;
  reset = done;
  permitJoin = done;
  addInstallCode = done;
  sendZclFrameToGroup = done;
  sendZclFrameToAll = done;
  waitFor = () => ({ promise: new Promise(() => {}), cancel() {} });

  async sendZdo(_ieee, nwkAddress, cluster) {
    if (cluster === ClusterId.ACTIVE_ENDPOINTS_REQUEST) return [Status.SUCCESS, { nwkAddress, endpointList: [1] }];
    return [Status.SUCCESS, cluster === ClusterId.SIMPLE_DESCRIPTOR_REQUEST ? { nwkAddress, ...ENDPOINT } : {}];
  }

  async sendZclFrameToEndpoint(ieee, _nwkAddress, _endpoint, { cluster, command }) {
    console.log(`RADIO ${ieee} ${cluster.name} ${command.name}`);
  }
}

Adapter.create = async (...args) => new Radio(...args);
