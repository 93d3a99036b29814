// What one broker process is told at start: the typed object that every other file reads.
// It holds values only. Names, sources, defaults and rules are in the settings tables; a value here
// has been validated, alone and in combination, before anything is bound.

/** An IP literal and a port. */
export interface BindAddress {
  /** IPv4 or IPv6 literal, without brackets. */
  readonly hostname: string;
  /** 0 to 65535; 0 takes any free port. */
  readonly port: number;
}

/** What happens to a record that arrives at a full subscriber queue. */
export type QueuePolicy = "drop_new" | "drop_old" | "block";

/** Form of a log line. */
export type LogFormat = "json" | "text";

/** Everything a broker process is told at start (spec/operations.md §3). */
export interface BrokerSettings {
  // Listeners and TLS

  /** Client QUIC listener. */
  readonly quicBind: BindAddress;
  /** Second client listener that requires ALPN `felix/1`; `null`: none. */
  readonly quicAlpnBind: BindAddress | null;
  /** QUIC engine of the client listeners. */
  readonly quicEngine: "native" | "quiche";
  /** PEM file of the served chain; `null`: a certificate is generated at every start. */
  readonly tlsCert: string | null;
  /** PEM file of its key; set exactly when `tlsCert` is. */
  readonly tlsKey: string | null;
  /** Refuse to start on the generated certificate. */
  readonly tlsRequireCert: boolean;
  /** File to write the generated certificate to, as PEM. */
  readonly tlsCertExport: string | null;
  /** The client listener requires ALPN `felix/1`. */
  readonly tlsRequireAlpn: boolean;
  /** Metrics and probes, plain HTTP. */
  readonly metricsBind: BindAddress;

  // Identity, keys and catalog

  /** Base URL of the control plane; `null` when keys come from a file or another URL. */
  readonly controlplaneUrl: string | null;
  /** PEM file with further roots for an https control plane or JWKS URL. */
  readonly controlplaneCa: string | null;
  /** JWKS file with the public keys of every tenant. */
  readonly jwksFile: string | null;
  /** JWKS URL; `{tenant}` in it is replaced by the percent-encoded tenant id. */
  readonly jwksUrl: string | null;
  /** Seconds that fetched keys serve on past their life while they cannot be fetched; 0: not. */
  readonly jwksStaleMaxSeconds: number;
  /** YAML file that lists tenants, namespaces, streams and caches; `null`: an empty catalog. */
  readonly catalogFile: string | null;
  /** `host:port` given to clients in topology answers; `null`: the bound address. */
  readonly clientAdvertiseAddr: string | null;
  /** Region that this broker reports. */
  readonly regionId: string;

  // Durable storage

  /** Root directory of durable streams; `null`: everything is kept in memory. */
  readonly durableStorageDir: string | null;
  /** When an acked record is on the device. */
  readonly fsyncMode: "none" | "periodic" | "on_commit";
  /** Milliseconds between two flushes of the `periodic` mode. */
  readonly fsyncIntervalMs: number;
  /** Size after which a log goes on in a new segment file. */
  readonly segmentBytes: number;
  /** Bytes that a shard's log may hold; `null`: any number. */
  readonly retentionBytes: number | null;
  /** Age after which a segment is removed, in seconds; `null`: never. */
  readonly retentionSeconds: number | null;
  /** Seconds between two looks at what retention removes. */
  readonly retentionIntervalSeconds: number;
  /** Bytes between two entries of a segment's index. */
  readonly indexSpacingBytes: number;
  /** Most records of one read of a log. */
  readonly maxRecordsPerRead: number;
  /** Read every segment in full at the start. */
  readonly verifyAllOnOpen: boolean;
  /** Cut a damaged last record even where it may have been acknowledged. */
  readonly repairChecksumTail: boolean;
  /** What compactions may read and write; 0: no bound. */
  readonly compactionBytesPerSecond: number;

  // Publish path

  /** Executors of the publish scheduler, 1 or more, for the whole process. */
  readonly pubWorkersPerConn: number;
  /** Queue slots per executor; the queue holds this times `pubWorkersPerConn` publishes. */
  readonly pubQueueDepth: number;
  /** Process-wide budget of queued or processing publish bytes. */
  readonly publishInflightBytes: number;
  /** Share of one identity on one connection, in bytes. */
  readonly publishConnInflightBytes: number;
  /** Acked publishes one stream may have unanswered; 0: no pipelining. */
  readonly publishWindow: number;
  /** Unacked publishes wait for room instead of being shed. */
  readonly pubIngressWait: boolean;
  /** Milliseconds a commit-acked publish waits for room. */
  readonly publishQueueWaitMs: number;
  /** Ack after the write; `false`: on enqueue. */
  readonly ackOnCommit: boolean;
  /** Milliseconds an answer may wait for a commit. */
  readonly ackWaitTimeoutMs: number;
  /** Largest frame payload accepted or sent, in bytes. */
  readonly maxFrameBytes: number;

  // Limits before and after authentication

  /** Largest frame payload before authentication, in bytes; never above `maxFrameBytes`. */
  readonly preauthMaxFrameBytes: number;
  /** Unauthenticated streams of one connection that are read at once. */
  readonly preauthMaxStreamsPerConn: number;
  /** Milliseconds until a connection without an authenticated stream is closed; 0: never. */
  readonly authTimeoutMs: number;
  /** Client connections; further ones are refused before the handshake. */
  readonly maxClientConnections: number;
  /** Client connections of one source address; 0: unlimited. */
  readonly maxConnectionsPerIp: number;
  /** Subscriptions of one identity on one connection. */
  readonly maxSubscriptionsPerConn: number;
  /** Tenants with a metric label of their own; later ones share `_overflow`. */
  readonly tenantMetricsMax: number;

  // Streams and delivery

  /** Most events in one delivery frame. */
  readonly eventBatchMaxEvents: number;
  /** Most payload bytes in one delivery frame. */
  readonly eventBatchMaxBytes: number;
  /** Microseconds a delivery batch may wait to fill; below 1000: one turn of the event loop. */
  readonly eventBatchMaxDelayUs: number;
  /** Queue of one subscriber, in published batches. */
  readonly subscriberQueueCapacity: number;
  /** Most batches that a client may ask for with `queue_capacity`. */
  readonly subscriberQueueCapacityMax: number;
  /** Queue of one subscriber, in payload bytes. */
  readonly subscriberQueueBytes: number;
  /** What a full subscriber queue does. */
  readonly subQueuePolicy: QueuePolicy;
  /** Most frames coalesced into one write. */
  readonly subFlushMaxItems: number;
  /** Most bytes in one write call. */
  readonly subMaxBytesPerWrite: number;
  /** Most recent records that a stream shard keeps in memory. */
  readonly streamRingRecords: number;
  /** Most bytes of records that a stream shard keeps in memory. */
  readonly streamRingBytes: number;
  /** Memory of all caches together, in bytes. */
  readonly cacheMemoryBytes: number;

  // Transport

  /** Unread publish bytes of one connection at which its reading stops. */
  readonly pubConnRecvWindow: number;
  /** Unread publish bytes of one stream at which its reading stops. */
  readonly pubStreamRecvWindow: number;
  /** Milliseconds between keep-alive packets. */
  readonly keepaliveMs: number;
  /** Milliseconds of silence after which a peer counts as dead. */
  readonly maxIdleTimeoutMs: number;

  // Lifecycle and logs

  /** One budget for everything that drains at shutdown, in milliseconds. */
  readonly shutdownDrainTimeoutMs: number;
  /** Milliseconds of serving on after readiness went off. */
  readonly shutdownPredrainMs: number;
  /** Level filter, as `info` or `info,broker.publish=debug`. */
  readonly log: string;
  /** Form of a log line; `null`: text on a terminal, JSON elsewhere. */
  readonly logFormat: LogFormat | null;
  /** File that this process writes once it serves and removes when it stops (development). */
  readonly devFile: string | null;
  /** Further members of `devFile`, a JSON object. */
  readonly devInfo: string | null;
  /** Shut down when standard input ends. */
  readonly stopWithStdin: boolean;
}
