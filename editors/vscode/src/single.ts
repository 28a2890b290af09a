/** Keeps one server running. Knows nothing of VS Code, so that it can be tested without. */

export interface Server {
  start: () => Promise<void>;
  dispose: () => Promise<void>;
}

/** At most one server at a time: each restart ends the one before, whatever has become of it. */
export class Single {
  private running: Server | undefined;
  private turn: Promise<void> = Promise.resolve();

  /** `made` gives a new server; `report` is told why one did not start. */
  constructor(
    private readonly made: () => Promise<Server>,
    private readonly report: (error: unknown) => unknown,
  ) {}

  restart(): Promise<void> {
    return this.next(async () => {
      await this.end();
      try {
        this.running = await this.made();
        await this.running.start();
      } catch (error) {
        void this.report(error);
      }
    });
  }

  stop(): Promise<void> {
    return this.next(() => this.end());
  }

  private next(act: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(act);
    return this.turn;
  }

  private async end(): Promise<void> {
    const ended = this.running;
    this.running = undefined;
    try {
      await ended?.dispose();
    } catch {
      // It never ran, or does not answer: there is nothing left to end.
    }
  }
}
