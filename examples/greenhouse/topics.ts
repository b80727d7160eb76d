/** The topics of the app. `+` levels match every greenhouse and every device. */

/** The measurements of a device, retained: `{"celsius": 21.5}`. */
export const temperature = (greenhouse = '+', device = '+') => `greenhouses/${greenhouse}/${device}/temperature`;

/** The state of the vent of a device, retained: `{"isOpen": true}`. */
export const vent = (greenhouse = '+', device = '+') => `greenhouses/${greenhouse}/${device}/vent`;

/** Commands of the app to all devices of a greenhouse: `{"isOpen": true}`. */
export const command = (greenhouse = '+') => `greenhouses/${greenhouse}/command`;

/** The mean of the last window, retained; the stream rule publishes it. */
export const mean = (greenhouse = '+') => `greenhouses/${greenhouse}/mean`;

/** Temperatures that are too high; a rule publishes them. */
export const alarm = (greenhouse = '+') => `greenhouses/${greenhouse}/alarm`;

/** Everything below the name of a device. */
export const own = (greenhouse: string, device: string) => `greenhouses/${greenhouse}/${device}/#`;
