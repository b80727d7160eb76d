// The program of the device of the tutorial "Test a device": the firmware with its hardware, which only logs here.

// #region main
import mqtt from 'mqtt';
import { CONNECTION, startPump } from './pump.ts';

startPump(mqtt.connect(process.argv[2], CONNECTION), {
  level: () => 50,
  motor: (isOn) => console.log(`the motor is ${isOn ? 'on' : 'off'}`)
});
// #endregion
