// Every JSON message, told apart by `type` (spec/wire.md §4). One interface a message, one table a
// message (schemas.ts); the tests hold the two lists together.

import type {
  AuthMessage,
  AuthOkMessage,
  CacheShardsMessage,
  CacheShardsViewMessage,
  ErrorMessage,
  ExtensionMessage,
  NotLeaderMessage,
  OkMessage,
  ShardOwnersMessage,
  ShardOwnersViewMessage,
  StreamShardsMessage,
  StreamShardsViewMessage,
  TopologyMessage,
  TopologyViewMessage,
  UnsupportedMessage,
} from "./messages_session.ts";
import type {
  ProducerInitMessage,
  ProducerInitOkMessage,
  PublishBatchMessage,
  PublishErrorMessage,
  PublishIdempotentMessage,
  PublishIfMessage,
  PublishMessage,
  PublishOkMessage,
  PublishRefusedMessage,
  PublishWidthMessage,
} from "./messages_publish.ts";
import type {
  CommitMessage,
  CommitOkMessage,
  EventBatchMessage,
  EventMessage,
  EventStreamHelloMessage,
  OffsetForTimeMessage,
  OffsetValueMessage,
  ShardMovedMessage,
  StateGetMessage,
  StateValueMessage,
  StreamDeletedMessage,
  StreamReadMessage,
  StreamRecordsMessage,
  SubscribeCursorErrorMessage,
  SubscribedMessage,
  SubscribeMessage,
  SubscriptionLaggedMessage,
  TrimBeforeMessage,
  TrimOkMessage,
} from "./messages_subscribe.ts";
import type {
  CacheConditionResultMessage,
  CacheDeleteIfMessage,
  CacheDeleteMessage,
  CacheEventMessage,
  CacheGetMessage,
  CacheOkMessage,
  CachePutIfMessage,
  CachePutMessage,
  CacheValueMessage,
  CacheWatchLaggedMessage,
  CacheWatchMessage,
  CacheWatchStartedMessage,
  CounterAddMessage,
  CounterGetMessage,
  CounterValueMessage,
} from "./messages_cache.ts";
import type {
  GroupAckMessage,
  GroupDeadLetterListMessage,
  GroupDeadLetterMessage,
  GroupDeadLettersMessage,
  GroupDeletedMessage,
  GroupDeleteMessage,
  GroupDescribeMessage,
  GroupDiscardMessage,
  GroupExtendedMessage,
  GroupExtendMessage,
  GroupInfoMessage,
  GroupNackMessage,
  GroupPollMessage,
  GroupPositionMessage,
  GroupRecordsMessage,
  GroupRedriveMessage,
  GroupSeekMessage,
  ShardInspectInfoMessage,
  ShardInspectMessage,
  SubscriptionsListInfoMessage,
  SubscriptionsListMessage,
} from "./messages_group.ts";

/** A JSON message. */
export type Message =
  | AuthMessage
  | AuthOkMessage
  | OkMessage
  | ErrorMessage
  | UnsupportedMessage
  | ExtensionMessage
  | TopologyMessage
  | TopologyViewMessage
  | StreamShardsMessage
  | StreamShardsViewMessage
  | CacheShardsMessage
  | CacheShardsViewMessage
  | ShardOwnersMessage
  | ShardOwnersViewMessage
  | NotLeaderMessage
  | PublishMessage
  | PublishBatchMessage
  | PublishWidthMessage
  | PublishOkMessage
  | PublishErrorMessage
  | ProducerInitMessage
  | ProducerInitOkMessage
  | PublishIdempotentMessage
  | PublishRefusedMessage
  | PublishIfMessage
  | SubscribeMessage
  | SubscribedMessage
  | SubscribeCursorErrorMessage
  | EventStreamHelloMessage
  | EventMessage
  | EventBatchMessage
  | ShardMovedMessage
  | StreamDeletedMessage
  | SubscriptionLaggedMessage
  | CommitMessage
  | CommitOkMessage
  | StateGetMessage
  | StateValueMessage
  | StreamReadMessage
  | StreamRecordsMessage
  | OffsetForTimeMessage
  | OffsetValueMessage
  | TrimBeforeMessage
  | TrimOkMessage
  | CachePutMessage
  | CacheGetMessage
  | CacheDeleteMessage
  | CacheOkMessage
  | CacheValueMessage
  | CachePutIfMessage
  | CacheDeleteIfMessage
  | CacheConditionResultMessage
  | CacheWatchMessage
  | CacheWatchStartedMessage
  | CacheEventMessage
  | CacheWatchLaggedMessage
  | CounterAddMessage
  | CounterGetMessage
  | CounterValueMessage
  | GroupPollMessage
  | GroupAckMessage
  | GroupNackMessage
  | GroupExtendMessage
  | GroupDeadLetterMessage
  | GroupDeadLettersMessage
  | GroupDiscardMessage
  | GroupRedriveMessage
  | GroupSeekMessage
  | GroupDescribeMessage
  | GroupDeleteMessage
  | GroupRecordsMessage
  | GroupExtendedMessage
  | GroupDeadLetterListMessage
  | GroupPositionMessage
  | GroupInfoMessage
  | GroupDeletedMessage
  | ShardInspectMessage
  | ShardInspectInfoMessage
  | SubscriptionsListMessage
  | SubscriptionsListInfoMessage;

/** Names of the messages. */
export type MessageType = Message["type"];
