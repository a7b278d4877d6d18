// The five published replication modules (hachikuji/kafka-specification) as one breadth-first search, written from the
// TLA+ text and from nothing of this project: an independent count of states, transitions and levels.
//
//   g++ -O2 -std=c++17 -o published benchmarks/peers/published.cpp
//   ./published MODULE REPLICAS LOG_SIZE MAX_RECORDS MAX_EPOCH
//
// MODULE is truncate-to-hw, kip-101, kip-279, kip-320-first-try or kip-320. Prints one line of JSON.
// States are stored in full. A transition is an action with its parameters that is enabled in a state.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kMaxReplicas = 4, kMaxLog = 4, kMaxEpochs = 4;
constexpr int8_t kNone = -1;

int N, L, R, E;
enum Module { kTruncateToHw, kKip101, kKip279, kKip320FirstTry, kKip320 } module_;

struct Record {
  int8_t id, epoch;
  bool operator==(const Record& other) const { return id == other.id && epoch == other.epoch; }
};

struct Replica {
  Record records[kMaxLog];  // {kNone, kNone} from `end` on
  int8_t end, hw, epoch, leader;
  uint8_t isr;
};

struct Quorum {
  int8_t epoch, leader;
  uint8_t isr;
};

struct State {
  Replica replicas[kMaxReplicas];
  Quorum requests[kMaxEpochs];  // the request of epoch e, if e < next_epoch
  Quorum quorum;
  int8_t next_record, next_epoch;
};

std::vector<State> states;
std::vector<uint32_t> table;  // index of a state + 1, 0 for a free place
uint64_t transitions, mask;

uint64_t hash_of(const State& state) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&state);
  uint64_t hash = 1469598103934665603ull;
  for (size_t i = 0; i < sizeof(State); ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash ^ (hash >> 29);
}

void grow() {
  table.assign(table.empty() ? 1u << 16 : table.size() * 2, 0);
  mask = table.size() - 1;
  for (uint32_t i = 0; i < states.size(); ++i) {
    uint64_t place = hash_of(states[i]) & mask;
    while (table[place]) place = (place + 1) & mask;
    table[place] = i + 1;
  }
}

void add(const State& state) {
  if (states.size() * 2 >= table.size()) grow();
  uint64_t place = hash_of(state) & mask;
  for (; table[place]; place = (place + 1) & mask)
    if (!std::memcmp(&states[table[place] - 1], &state, sizeof(State))) return;
  states.push_back(state);
  table[place] = static_cast<uint32_t>(states.size());
}

void reach(const State& state) {
  ++transitions;
  add(state);
}

bool in(uint8_t isr, int replica) { return isr >> replica & 1; }
int8_t least(int a, int b) { return static_cast<int8_t>(a < b ? a : b); }

// ---- KafkaReplication.tla

bool presumes(const State& s, int replica) { return s.replicas[replica].leader == replica; }
bool follows(const State& s, int follower, int leader) { return s.replicas[follower].leader == leader; }

void controller_update(State s, int8_t leader, uint8_t isr) {
  if (s.next_epoch > E) return;
  s.quorum = {s.next_epoch, leader, isr};
  s.requests[s.next_epoch] = s.quorum;
  ++s.next_epoch;
  reach(s);
}

void controller_shrink_isr(const State& s) {
  for (int r = 0; r < N; ++r) {
    const auto without = static_cast<uint8_t>(s.quorum.isr & ~(1 << r));
    if (s.quorum.leader == r)
      controller_update(s, kNone, s.quorum.isr == 1 << r ? s.quorum.isr : without);
    else if (in(s.quorum.isr, r))
      controller_update(s, s.quorum.leader, without);
  }
}

void controller_elect_leader(const State& s) {
  for (int r = 0; r < N; ++r)
    if (in(s.quorum.isr, r) && s.quorum.leader != r) controller_update(s, static_cast<int8_t>(r), s.quorum.isr);
}

void become_leader(const State& s) {
  for (int e = 0; e < s.next_epoch; ++e) {
    const Quorum& request = s.requests[e];
    if (request.leader == kNone || request.epoch <= s.replicas[request.leader].epoch) continue;
    State next = s;
    Replica& own = next.replicas[request.leader];
    own.epoch = request.epoch, own.leader = request.leader, own.isr = request.isr;
    reach(next);
  }
}

void append(Replica& own, Record record) { own.records[own.end++] = record; }

void leader_write(const State& s) {
  for (int r = 0; r < N; ++r) {
    if (!presumes(s, r) || s.next_record >= R || s.replicas[r].end >= L) continue;
    State next = s;
    append(next.replicas[r], {next.next_record++, s.replicas[r].epoch});
    reach(next);
  }
}

void quorum_update(State s, int leader, uint8_t isr) {
  if (s.quorum.leader != leader || !presumes(s, leader) || s.replicas[leader].epoch != s.quorum.epoch) return;
  s.quorum.isr = s.replicas[leader].isr = isr;
  reach(s);
}

bool caught_up(const State& s, int leader, int follower, int end) {
  return follows(s, follower, leader) && (end == 0 || (end - 1 < s.replicas[leader].end && end - 1 < s.replicas[follower].end));
}

void truncate(Replica& own, int end) {
  for (int i = end; i < own.end; ++i) own.records[i] = {kNone, kNone};
  own.end = static_cast<int8_t>(end);
}

bool replicate(State& s, int leader, int follower) {
  const Replica& from = s.replicas[leader];
  Replica& own = s.replicas[follower];
  if (own.end >= L || own.end >= from.end) return false;
  append(own, from.records[own.end]);
  own.hw = least(from.hw, own.end);
  return true;
}

// ---- where a follower truncates

int lookup_kip_101(const State& s, int leader, int follower, int epoch) {
  const Replica &from = s.replicas[leader], &own = s.replicas[follower];
  if (from.end == 0) return own.hw;
  if (from.records[from.end - 1].epoch == epoch) return from.end;
  for (int i = 0; i < from.end; ++i)
    if (from.records[i].epoch > epoch) return i;
  return own.hw;
}

int first_non_matching(const State& s, int leader, int follower) {
  const Replica &from = s.replicas[leader], &own = s.replicas[follower];
  for (int i = own.end - 1; i >= 0; --i)
    if (i < from.end && own.records[i] == from.records[i]) return i + 1;
  return 0;
}

int truncation(const State& s, int leader, int follower) {
  const Replica& own = s.replicas[follower];
  if (module_ == kTruncateToHw) return own.hw;
  if (own.end == 0) return 0;
  return module_ == kKip101 ? lookup_kip_101(s, leader, follower, own.records[own.end - 1].epoch)
                            : first_non_matching(s, leader, follower);
}

void follow(Replica& own, const Quorum& request, int hw) {
  own.epoch = request.epoch, own.leader = request.leader, own.isr = request.isr, own.hw = static_cast<int8_t>(hw);
}

void become_follower(const State& s) {
  for (int e = 0; e < s.next_epoch; ++e) {
    const Quorum& request = s.requests[e];
    if (request.leader == kNone) continue;  // `leader` ranges over the replicas
    for (int r = 0; r < N; ++r) {
      if (request.leader == r || request.epoch <= s.replicas[r].epoch) continue;
      State next = s;
      Replica& own = next.replicas[r];
      if (module_ == kKip320FirstTry) {
        follow(own, request, own.hw);
      } else {
        const Replica& from = s.replicas[request.leader];
        if (module_ == kKip320 && !(presumes(s, request.leader) && from.epoch == request.epoch)) continue;
        const int offset = truncation(s, request.leader, r);
        if (offset > own.end) continue;
        truncate(own, offset);
        follow(own, request, least(offset, own.hw));
      }
      reach(next);
    }
  }
}

// ---- fences, from Kip320FirstTry.tla and Kip320.tla

bool in_same_epoch(const State& s, int leader, int follower) {
  return presumes(s, leader) && follows(s, follower, leader) && s.replicas[follower].epoch == s.replicas[leader].epoch;
}

bool caught_up_to_epoch(const State& s, int leader, int follower, int end) {
  if (!presumes(s, leader) || !follows(s, follower, leader)) return false;
  const Replica &from = s.replicas[leader], &own = s.replicas[follower];
  return end == 0 || (end <= from.end && end <= own.end && own.records[end - 1].epoch == from.records[end - 1].epoch);
}

bool epoch_reached(const State& s, int leader) {
  const Replica& own = s.replicas[leader];
  return own.hw == own.end || (own.hw < own.end && own.records[own.hw].epoch == own.epoch);
}

void leader_shrink_isr(const State& s) {
  for (int l = 0; l < N; ++l) {
    const Replica& own = s.replicas[l];
    for (int r = 0; r < N; ++r) {
      if (r == l || !in(own.isr, r)) continue;
      const bool stays = module_ == kKip320           ? in_same_epoch(s, l, r) && s.replicas[r].end >= own.end
                         : module_ == kKip320FirstTry ? caught_up_to_epoch(s, l, r, own.end)
                                                      : caught_up(s, l, r, own.end);
      if (!stays) quorum_update(s, l, static_cast<uint8_t>(own.isr & ~(1 << r)));
    }
  }
}

void leader_expand_isr(const State& s) {
  for (int l = 0; l < N; ++l) {
    const Replica& own = s.replicas[l];
    for (int r = 0; r < N; ++r) {
      if (in(own.isr, r)) continue;
      const bool joins =
          module_ == kKip320 ? in_same_epoch(s, l, r) && (own.hw == 0 || own.hw - 1 < s.replicas[r].end) && epoch_reached(s, l)
          : module_ == kKip320FirstTry ? caught_up_to_epoch(s, l, r, own.hw) && epoch_reached(s, l)
                                       : caught_up(s, l, r, own.hw);
      if (joins) quorum_update(s, l, static_cast<uint8_t>(own.isr | 1 << r));
    }
  }
}

void leader_inc_high_watermark(const State& s) {
  for (int l = 0; l < N; ++l) {
    const Replica& own = s.replicas[l];
    if (!presumes(s, l) || own.hw >= L) continue;
    if ((module_ == kKip320 || module_ == kKip320FirstTry) && own.hw >= own.end) continue;
    bool all = true;
    for (int r = 0; r < N && all; ++r) {
      if (!in(own.isr, r)) continue;
      const bool has = own.hw < s.replicas[r].end;
      all = module_ == kKip320           ? in_same_epoch(s, l, r) && has
            : module_ == kKip320FirstTry ? caught_up_to_epoch(s, l, r, own.hw + 1)
                                         : follows(s, r, l) && has;
    }
    if (!all) continue;
    State next = s;
    ++next.replicas[l].hw;
    reach(next);
  }
}

void follower_fetch(const State& s) {
  for (int l = 0; l < N; ++l)
    for (int f = 0; f < N; ++f) {
      const bool may = module_ == kKip320           ? in_same_epoch(s, l, f)
                       : module_ == kKip320FirstTry ? caught_up_to_epoch(s, l, f, s.replicas[f].end)
                                                    : presumes(s, l) && follows(s, f, l);
      State next = s;
      if (may && replicate(next, l, f)) reach(next);
    }
}

void follower_truncate(const State& s) {
  for (int l = 0; l < N; ++l)
    for (int f = 0; f < N; ++f) {
      if (!presumes(s, l) || !follows(s, f, l)) continue;
      const Replica &from = s.replicas[l], &own = s.replicas[f];
      const int last = own.end - 1;
      if (!(own.end > from.end || (last >= 0 && last < from.end && from.records[last].epoch != own.records[last].epoch))) continue;
      const int offset = first_non_matching(s, l, f);
      State next = s;
      truncate(next.replicas[f], offset);
      next.replicas[f].hw = least(offset, own.hw);
      reach(next);
    }
}

void expand(const State& s) {
  controller_elect_leader(s);
  controller_shrink_isr(s);
  become_leader(s);
  leader_expand_isr(s);
  leader_shrink_isr(s);
  leader_write(s);
  leader_inc_high_watermark(s);
  become_follower(s);
  follower_fetch(s);
  if (module_ == kKip320FirstTry) follower_truncate(s);
}

// ---- invariants

bool agree(const State& s, int leader, uint8_t isr) {
  const Replica& own = s.replicas[leader];
  for (int r = 0; r < N; ++r)
    for (int i = 0; in(isr, r) && i < own.hw; ++i)
      if (i >= own.end || i >= s.replicas[r].end || !(own.records[i] == s.replicas[r].records[i])) return false;
  return true;
}

bool weak_isr(const State& s) {
  for (int l = 0; l < N; ++l)
    if (presumes(s, l) && !agree(s, l, s.replicas[l].isr)) return false;
  return true;
}

bool strong_isr(const State& s) {
  for (int l = 0; l < N; ++l)
    if (presumes(s, l) && !agree(s, l, s.quorum.isr)) return false;
  return true;
}

std::string length(size_t depth) { return depth ? std::to_string(depth) : "null"; }

}  // namespace

int main(int argc, char** argv) {
  const char* names[] = {"truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320"};
  int chosen = -1;
  for (int i = 0; argc == 6 && i < 5; ++i)
    if (std::string(argv[1]) == names[i]) chosen = i;
  if (chosen < 0) return std::fprintf(stderr, "usage: published MODULE REPLICAS LOG_SIZE MAX_RECORDS MAX_EPOCH\n"), 2;
  module_ = static_cast<Module>(chosen);
  N = std::atoi(argv[2]), L = std::atoi(argv[3]), R = std::atoi(argv[4]), E = std::atoi(argv[5]);
  if (N < 1 || N > kMaxReplicas || L < 0 || L > kMaxLog || R < 0 || R > 100 || E < 0 || E >= kMaxEpochs)
    return std::fprintf(stderr, "at most %d replicas, a log of %d, epochs up to %d\n", kMaxReplicas, kMaxLog, kMaxEpochs - 1), 2;
  State first;
  std::memset(&first, 0, sizeof first);
  for (auto& replica : first.replicas) {
    for (auto& record : replica.records) record = {kNone, kNone};
    replica.epoch = replica.leader = kNone;
  }
  first.quorum = {kNone, kNone, static_cast<uint8_t>((1 << N) - 1)};
  add(first);
  std::string levels;
  size_t depth = 0, weak = 0, strong = 0;  // how many states a shortest run to a violation has, 0: there is none
  for (size_t from = 0; from < states.size();) {
    const size_t to = states.size();
    levels += (depth++ ? ", " : "") + std::to_string(to - from);
    for (; from < to; ++from) {
      if (!weak && !weak_isr(states[from])) weak = depth;
      if (!strong && !strong_isr(states[from])) strong = depth;
      const State state = states[from];  // a copy: the vector moves when it grows
      expand(state);
    }
  }
  std::printf("{\"model\": \"%s\", \"parameters\": {\"replicas\": %d, \"log_size\": %d, \"max_records\": %d, \"max_epoch\": %d}, ",
              names[chosen], N, L, R, E);
  std::printf("\"distinct_states\": %zu, \"depth\": %zu, \"transitions\": %llu, \"levels\": [%s], \"trace_lengths\": {\"WeakIsr\": %s, \"StrongIsr\": %s}}\n",
              states.size(), depth, static_cast<unsigned long long>(transitions), levels.c_str(), length(weak).c_str(),
              length(strong).c_str());
}
