/** The base of all errors of this module. */
export class OneturnError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The turn key was used before with other data, or the id of a message with other content: see index.d.ts. */
export class ConflictError extends OneturnError {}

/** No worker answers requests. What was published stays stored until one runs. */
export class NoWorkerError extends OneturnError {}

/** The time to wait is over. What was published stays stored: waiting again, or sending it again, is harmless. */
export class WaitError extends OneturnError {}
