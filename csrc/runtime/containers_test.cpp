// Lists, dicts, tuples, objects, futures: what they hold, how they compare, how they print.
#include <limits>
#include <thread>

#include "runtime/dict.h"
#include "runtime/equality.h"
#include "runtime/future.h"
#include "runtime/list.h"
#include "runtime/object.h"
#include "runtime/print.h"
#include "runtime/tuple.h"
#include "testing.h"

namespace weft {
namespace {

Value text(const char* value) { return Value(std::string(value)); }
Value number(int64_t value) { return Value(value); }
Value ints(std::vector<int64_t> items) { return Value(std::move(items)); }

TEST(list_is_shared_by_reference) {
  const Value list = ints({1, 2});
  const Value same = list;
  list_append(same, number(3));
  CHECK_EQ(Dims(list.to_ints()), (Dims{1, 2, 3}));
  CHECK_TRUE(is_same(list, same));
  CHECK_FALSE(is_same(list, ints({1, 2, 3})));
  CHECK_TRUE(equal(list, ints({1, 2, 3})));
}

TEST(lists_of_tensors_hold_no_none) {
  const Value tensors = make_list(ValueTag::TensorList);
  const Value optional = make_list(ValueTag::OptionalTensorList);
  list_append(optional, Value());
  Value none;
  CHECK_THROWS_MSG(list_append(tensors, Value()), "expected a tensor, got NoneType");
  CHECK_THROWS_MSG(list_append(tensors, number(1)), "expected a tensor, got int");
  CHECK_THROWS_MSG(make_list(ValueTag::TensorList, &none, 1), "expected a tensor, got NoneType");
  CHECK_EQ(list_len(tensors), 0);
  CHECK_EQ(list_len(optional), 1);
}

TEST(containers_that_hold_themselves_are_no_endless_walks) {
  const Value list = make_list(ValueTag::List), other = make_list(ValueTag::List);
  list_append(list, list);
  list_append(other, other);
  const char* deep = "expected a value nested at most 200 deep";
  CHECK_THROWS_MSG(equal(list, other), deep);
  CHECK_THROWS_MSG(order(list, other), deep);
  CHECK_THROWS_MSG(repr(list), deep);
  list_set(list, 0, Value());
  list_set(other, 0, Value());
  CHECK_TRUE(equal(list, other));
}

TEST(list_every_storage_appends_gets_sets) {
  const Tensor tensor = Tensor::scalar(Scalar(1), DType::I64);
  const std::pair<ValueTag, Value> kinds[] = {
      {ValueTag::IntList, number(7)},          {ValueTag::DoubleList, Value(1.5)},
      {ValueTag::BoolList, Value(true)},       {ValueTag::TensorList, Value(tensor)},
      {ValueTag::OptionalTensorList, Value()}, {ValueTag::List, text("a")}};
  for (const auto& [tag, item] : kinds) {
    const Value list = make_list(tag);
    CHECK_EQ(list.tag(), tag);
    list_append(list, item);
    list_append(list, item);
    list_set(list, -1, item);
    CHECK_EQ(list_len(list), 2);
    CHECK_TRUE(is_same(list_get(list, -2), item));
  }
}

TEST(list_index_errors) {
  const Value list = ints({1, 2});
  CHECK_THROWS_AS(Index, list_get(list, 2),
                  "list index out of range: expected an index in [-2, 1], got 2");
  CHECK_THROWS_AS(Index, list_get(list, std::numeric_limits<int64_t>::min()),
                  "list index out of range: expected an index in [-2, 1], got "
                  "-9223372036854775808");
  CHECK_THROWS_AS(Index, list_get(make_list(ValueTag::IntList), 0),
                  "list index out of range: expected a list that is not empty, got index 0");
  CHECK_THROWS_AS(Index, list_set(list, -3, number(0)),
                  "list assignment index out of range: expected an index in [-2, 1], got -3");
}

// Against the definition: the indices a loop from start to end would visit.
TEST(list_slice_bounds) {
  for (int64_t size = 0; size < 5; ++size) {
    for (int64_t start = -6; start <= 6; ++start) {
      for (int64_t end = -6; end <= 6; ++end) {
        for (const int64_t step : {1, 2, 3, -1, -2, -3}) {
          std::vector<int64_t> wanted, got;
          const int64_t first = start < 0 ? start + size : start;
          const int64_t last = end < 0 ? end + size : end;
          for (int64_t i = step > 0 ? 0 : size - 1; i >= 0 && i < size; i += step > 0 ? 1 : -1) {
            const bool inside = step > 0 ? i >= first && i < last : i <= first && i > last;
            const int64_t origin =
                step > 0 ? std::max<int64_t>(first, 0) : std::min<int64_t>(first, size - 1);
            if (inside && (i - origin) % step == 0) wanted.push_back(i);
          }
          const Slice slice = slice_bounds(number(start), number(end), step, size);
          for (int64_t i = 0; i < slice.count; ++i) got.push_back(slice.start + i * slice.step);
          CHECK_EQ(got, wanted);
        }
      }
    }
  }
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  CHECK_EQ(slice_bounds(Value(), Value(), least, 3).count, 1);
  CHECK_EQ(slice_bounds(number(least), number(-(least + 1)), 1, 3).count, 3);
}

TEST(dict_keeps_order) {
  const Value value = make_dict();
  auto& dict = *value.object<DictObject>();
  for (const char* key : {"b", "a", "c"}) dict.set(text(key), text(key));
  dict.set(text("b"), number(1));
  CHECK_EQ(repr(value), "{'b': 1, 'a': 'a', 'c': 'c'}");
  Value taken;
  CHECK_TRUE(dict.remove(text("b"), &taken));
  CHECK_FALSE(dict.remove(text("b"), &taken));
  dict.set(text("b"), number(2));
  CHECK_EQ(repr(value), "{'a': 'a', 'c': 'c', 'b': 2}");
  CHECK_TRUE(dict.find(text("z")) == nullptr);
}

TEST(dict_numbers_that_are_equal_are_one_key) {
  auto dict = make_ref<DictObject>();
  dict->set(number(1), text("int"));
  dict->set(Value(1.0), text("float"));
  dict->set(Value(true), text("bool"));
  dict->set(Value(std::complex<double>(1, 0)), text("complex"));
  CHECK_EQ(dict->size(), 1);
  dict->set(Value(0.0), text("zero"));
  CHECK_EQ(dict->find(Value(-0.0))->text(), "zero");
}

TEST(dict_tensor_keys_by_identity) {
  auto dict = make_ref<DictObject>();
  const Tensor a = Tensor::scalar(Scalar(1), DType::I64), b = Tensor::scalar(Scalar(1), DType::I64);
  dict->set(Value(a), number(1));
  dict->set(Value(b), number(2));
  CHECK_EQ(dict->size(), 2);
  CHECK_EQ(dict->find(Value(a))->to_int(), 1);
  CHECK_THROWS_AS(
      Type, dict->set(ints({}), number(1)),
      "dict: expected a key of type str, int, float, bool, complex, device, Tensor, enum or "
      "tuple, got "
      "List[int]");
}

TEST(dict_survives_many_changes) {
  auto dict = make_ref<DictObject>();
  for (int64_t i = 0; i < 20000; ++i) {
    dict->set(number(i * 8), number(i));
    if (i >= 10) CHECK_TRUE(dict->remove(number((i - 10) * 8), nullptr));
  }
  CHECK_EQ(dict->size(), 10);
  Value key, value;
  for (int64_t i = 0; i < 20000; ++i) {  // gaps of popped entries must not fill the table
    dict->set(number(-1 - i), number(i));
    CHECK_TRUE(dict->pop_last(&key, &value));
    CHECK_EQ(value.to_int(), i);
  }
  for (int64_t left = 10; left > 0; --left) CHECK_TRUE(dict->pop_last(&key, &value));
  CHECK_FALSE(dict->pop_last(&key, &value));
  CHECK_EQ(dict->size(), 0);
}

TEST(equality_is_deep) {
  const auto nested = [](int64_t last) {
    return Value(std::vector<Value>{text("a"), make_tuple_value({ints({1}), number(last)})});
  };
  CHECK_TRUE(equal(nested(2), nested(2)));
  CHECK_FALSE(equal(nested(2), nested(3)));
  CHECK_TRUE(equal(number(1), Value(1.0)));
  CHECK_FALSE(equal(number((int64_t{1} << 53) + 1), Value(0x1p53)));
  CHECK_FALSE(equal(text("1"), number(1)));
  const Value nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(equal(nan, nan));
  CHECK_TRUE(is_same(nan, nan));
}

TEST(order_is_pythons) {
  CHECK_TRUE(less(ints({1, 2}), ints({1, 2, 0})));
  CHECK_FALSE(less(ints({2}), ints({1, 5})));
  CHECK_TRUE(less(number(1), Value(1.5)));
  CHECK_FALSE(less(number((int64_t{1} << 53) + 1), Value(0x1p53)));
  CHECK_TRUE(less(make_tuple_value({text("a"), number(1)}), make_tuple_value({text("b")})));
  CHECK_THROWS_AS(
      Type, less(text("a"), number(1)),
      "ordering: expected numbers, strings, or lists or tuples of them, got str and int");
}

TEST(values_print_as_in_python) {
  auto point = make_ref<NamedTupleDef>();
  point->name = "__torch__.pkg.Point";
  point->fields = {"x", "y"};
  auto color = make_ref<EnumDef>();
  color->name = "__torch__.Color";
  color->members = {"RED", "BLUE"};
  color->values = {number(1), number(2)};
  CHECK_EQ(repr(make_tuple_value({number(1), Value(2.0)}, point)), "Point(x=1, y=2.0)");
  CHECK_EQ(repr(make_tuple_value({Value()})), "(None,)");
  CHECK_EQ(repr(make_enum(color, 1)), "<Color.BLUE: 2>");
  CHECK_EQ(to_text(make_enum(color, 1)), "Color.BLUE");
  CHECK_TRUE(equal(make_enum(color, 1), make_enum(color, 1)));
  CHECK_FALSE(is_same(make_enum(color, 0), make_enum(color, 1)));
  CHECK_EQ(repr(Value(std::vector<double>{1, 0.1, 1e30})), "[1.0, 0.1, 1e+30]");
  CHECK_EQ(repr(Value(std::vector<bool>{true, false})), "[True, False]");
  CHECK_EQ(repr(Value(std::complex<double>(0, 2))), "2j");
  CHECK_EQ(to_text(text("it's")), "it's");
  CHECK_EQ(repr(text("it's")), "\"it's\"");
  CHECK_EQ(repr(text("a'\"\n\x01\\")), "'a\\'\"\\n\\x01\\\\'");
  CHECK_EQ(repr(Value(Tensor::scalar(Scalar(2), DType::F32))), "tensor(2.)");
  CHECK_EQ(repr(Value(DType::F16)), "torch.float16");
}

TEST(objects_find_their_attributes) {
  auto def = make_ref<ClassDef>();
  def->name = "__torch__.M";
  def->attributes = {"weight", "count"};
  const Value object = make_object(def);
  CHECK_EQ(def->find_slot("count"), 1);
  CHECK_EQ(def->find_slot("bias"), -1);
  CHECK_TRUE(object.object<ClassObject>()->slots[1].is_none());
  CHECK_EQ(type_name(object), "M");
}

TEST(long_chains_are_freed_without_recursion) {
  Value chain;
  for (int i = 0; i < 1000000; ++i) {
    std::vector<Value> link;
    link.push_back(std::move(chain));
    chain = make_tuple_value(std::move(link));
  }
  chain = Value();
  CHECK_TRUE(chain.is_none());
}

TEST(future_hands_over_values_and_errors) {
  const Value future = make_future();
  auto* object = future.object<FutureObject>();
  CHECK_FALSE(object->done());
  std::thread worker([future, object] { object->set_value(number(5)); });
  CHECK_EQ(object->wait().to_int(), 5);
  worker.join();
  CHECK_TRUE(object->done());
  const Value failed = make_future();
  failed.object<FutureObject>()->set_error(
      std::make_exception_ptr(Error(ErrorKind::Key, "no such key")));
  CHECK_THROWS_AS(Key, failed.object<FutureObject>()->wait(), "no such key");
}

}  // namespace
}  // namespace weft
